"""One network in training: what happens at each step and at the end of each epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from copy import copy, deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch_geometric.data import Batch

from lspe.data import BatchLoader, NeighbourLoader, PackedGraphs
from lspe.devices import home_of_float64
from lspe.errors import UserError
from lspe.experiment.protocol import FastProtocol, PaperProtocol, Training
from lspe.experiment.task import scores_for
from lspe.nn import Network
from lspe.training import checkpoint
from lspe.training.average import MovingAverage
from lspe.training.distributed import add_up, rank, share_statistics, world_size
from lspe.training.evaluation import Evaluation, evaluate, evaluation_batch_size, graph_of_target, loss_sums, mean_loss
from lspe.training.flat import FlatParameters
from lspe.training.objective import Objective
from lspe.training.one_pass import step_at_once
from lspe.training.optimizer import arrange, make_optimizer
from lspe.training.scores import Scores

STEPS_AT_ONCE = 8
"""Our steps that are one of Lightning's, where nobody looks at what happens between them. Each of its own costs it half
a millisecond, one of ours with 32 molecules takes some twelve."""
CHEAP_TO_SCORE = 10_000_000
"""Outputs of an epoch up to which the training score is computed from them on the way."""


class TrainingError(UserError):
    """A training that cannot go on, and why."""


@dataclass(frozen=True)
class EpochResult:
    """What an epoch gave."""

    epoch: int
    lr: float
    train: Evaluation
    val: Evaluation
    seconds: float
    per_second: float
    unit: str = "graphs"


@dataclass
class _SoFar:
    """What the steps of an epoch have added up to."""

    sums: Tensor
    scores: Scores | None
    started: float
    batches: int = 0


class _Together:
    """The batches of a loader, so many at once; each is made when it is asked for."""

    def __init__(self, loader: BatchLoader, count: int) -> None:
        self.loader, self.count = loader, count

    def __len__(self) -> int:
        return math.ceil(len(self.loader) / self.count)

    def __iter__(self) -> Iterator[Iterator[Batch]]:
        batches = iter(self.loader)
        for _ in range(len(self)):
            yield islice(batches, self.count)


class TrainingModule(LightningModule):
    """A network in training, with optimizer, learning rate and averaged weights as its protocol says.

    Optimisation is by hand (Lightning calls it manual), so that a step reads as it happens. Every random number of
    an epoch, the order of the graphs and dropout alike, is drawn from seed and epoch: a run that goes on from the
    end of an earlier epoch does what it would have done.

    With several processes each takes its part of every batch, and the loss is divided by what the whole batch
    holds, so that the gradient is that of the whole batch. BatchNorm sees the part of its own process (unless
    ``training.sync_batch_norm`` says otherwise); its running statistics are averaged over processes at the end of each
    epoch. The ``released`` scaling of the positional
    loss, which is no mean over graphs, is taken over parts too.

    Args:
        network: with fresh weights, or those to start from.
        objective: loss and scores.
        training: batch size, protocol, positional loss.
        train: the graphs to learn from.
        val: the graphs that choose the learning rate and the best epoch.
        seed: of order and dropout.

    Attributes:
        after_step: called after each step.
        is_watched: whether Lightning is to see each step by itself.

    """

    def __init__(
        self,
        network: Network,
        objective: Objective,
        training: Training,
        train: PackedGraphs,
        val: PackedGraphs,
        *,
        seed: int,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.network = network
        self.objective = objective
        self.training_config = training
        self.protocol: PaperProtocol | FastProtocol = training.protocol
        self.positional = training.positional_loss
        self.val = val
        self.seed = seed
        self.loader = (
            NeighbourLoader(train, training.nodes_per_step, training.neighbours, shuffle=True, seed=seed)
            if training.neighbours
            else BatchLoader(train, training.batch_size, shuffle=True, seed=seed)
        )
        self.epoch = 0
        self.is_watched = True
        self.after_step: Callable[[], None] = lambda: None
        self.average: MovingAverage | None = None
        self.optimizer: Optimizer
        self.parameters_of_network: FlatParameters
        self.plateau: ReduceLROnPlateau | None = None
        self.so_far: _SoFar
        self._resume: dict[str, Any] | None = None

    @property
    def reported_network(self) -> Network:
        """The network whose weights count: the average where there is one."""
        return self.network if self.average is None else self.average.network  # type: ignore[return-value]

    def train_dataloader(self) -> BatchLoader | _Together:
        self.loader.rank, self.loader.world_size = rank(), world_size()
        alone = self.is_watched or world_size() > 1 or self.device.type != "cpu"
        return self.loader if alone else _Together(self.loader, STEPS_AT_ONCE)

    def configure_optimizers(self) -> Optimizer:
        protocol = self.protocol
        self.parameters_of_network = arrange(self.network, protocol)
        self.optimizer = make_optimizer(self.parameters_of_network, protocol)
        if protocol.ema is not None:
            self.average = MovingAverage(self.network, self.parameters_of_network, protocol.ema)
        if not protocol.goes_by_steps:
            self.plateau = ReduceLROnPlateau(self.optimizer, factor=protocol.factor, patience=protocol.patience or 0)
        if self._resume is not None:
            self._restore_optimization(self._resume)
            self._resume = None
        return self.optimizer

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        """Batches are made in the CPU's memory; to look at each of their tensors takes as long as to make them."""
        return batch if device.type == "cpu" else super().transfer_batch_to_device(batch, device, dataloader_idx)

    def on_train_epoch_start(self) -> None:
        state = np.random.SeedSequence([self.seed, self.epoch, rank()]).generate_state(1)
        torch.manual_seed(int(state[0]))
        self.loader.set_epoch(self.epoch)
        self.network.train()
        cheap = len(self.loader.graphs.y) * self.objective.task.outputs <= CHEAP_TO_SCORE
        self.so_far = _SoFar(
            torch.zeros(4, dtype=torch.float64, device=home_of_float64(self.device)),
            self.objective.scores().to(self.device) if cheap else None,
            time.perf_counter(),
        )

    def training_step(self, batch: Batch | Iterator[Batch], _: int) -> None:
        """What Lightning takes for a step: a batch, or several, between which it does not see what it is told."""
        if not isinstance(batch, islice):
            self.learn_from(batch, self.so_far.batches)
            return
        for one in batch:
            self.learn_from(one, self.so_far.batches)
            if self.trainer.received_sigterm:
                raise SIGTERMException

    def learn_from(self, batch: Batch, index: int) -> None:
        """The step of a batch, ``index`` in its epoch."""
        step, place = divmod(index, self.training_config.accumulate)
        batches = min(self.training_config.accumulate, len(self.loader) - index + place)
        if place == 0:
            self._set_lr_of(step)
            self.parameters_of_network.forget_gradients()
        with self.parameters_of_network.gathered() if world_size() == 1 else nullcontext():
            sums = self._forward(batch)
            whole = add_up(sums.detach())
            if not math.isfinite(float(whole.sum())):
                raise TrainingError(self._not_finite(index))
            self.manual_backward(world_size() * mean_loss(sums, whole, self.positional) / batches)
        if place == batches - 1:
            self._step()
        self.so_far.sums += whole.to(self.so_far.sums.device)
        self.so_far.batches += 1
        self.after_step()

    def _set_lr_of(self, step: int) -> None:
        """Where the learning rate goes by steps; ``step`` is counted within the epoch."""
        if self.protocol.goes_by_steps:
            steps = math.ceil(len(self.loader) / self.training_config.accumulate)
            lr = self.protocol.learning_rate(self.epoch * steps + step, self.protocol.max_epochs * steps)
            for group in self.optimizer.param_groups:
                group["lr"] = lr

    def _step(self) -> None:
        self.parameters_of_network.gather_gradients()
        parts = (self.optimizer, self.parameters_of_network, self.protocol.clip, self.average)
        if step_at_once(*parts, forget=not self.is_watched):
            return
        if self.protocol.clip is not None:
            self.parameters_of_network.clip(self.protocol.clip)
        self.optimizer.step()
        if self.average is not None:
            self.average.update()

    def _forward(self, batch: Batch) -> Tensor:
        """The sums of the loss; of a process without graphs in this batch, zeros that backward can start from."""
        if batch.num_graphs == 0 and not self.training_config.sync_batch_norm:
            self._note(torch.zeros(0, self.objective.task.outputs, device=self.device), batch)
            nothing = next(self.network.parameters()).sum() * 0
            return torch.stack([nothing] * 4)
        output, p = self._run(batch)
        self._note(output, batch)
        return loss_sums(output, p, batch, self.objective, self.positional)

    def _run(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The network's output and, where they are part of the loss, final positions."""
        mixed = self.training_config.precision != "float32"
        with torch.autocast(self.device.type, torch.bfloat16) if mixed else nullcontext():
            if self.positional is None:
                output, p = self.network(batch), None
            else:
                output, _, p = self.network.run(batch)
        return (output.float(), None if p is None else p.float()) if mixed else (output, p)

    def _note(self, output: Tensor, batch: Batch) -> None:
        if self.so_far.scores is not None:
            self.so_far.scores.update(output, batch.y)

    def leaves_parameters_unused(self) -> bool:
        """Whether some parameters have no part in the loss, tried on two graphs or nodes, before processes begin.

        The last layer's edges lead nowhere, for instance, nor do positions that are not read out.
        """
        if self.training_config.sync_batch_norm:  # fused layers, as would be tried here, leave out nothing
            return True
        network = deepcopy(self.network).train()
        with torch.random.fork_rng(devices=[]):
            batch = self.loader.batch(np.arange(min(2, self.loader.count)), 0)
            output, _, p = network.run(batch)
            sums = loss_sums(output, p, batch, self.objective, self.positional)
            mean_loss(sums, sums.detach(), self.positional).backward()
        return any(parameter.grad is None for parameter in network.parameters())

    def finish_epoch(self) -> EpochResult:
        """Evaluate, let the learning rate fall where it should, and count the epoch."""
        sums, scores, started = self.so_far.sums, self.so_far.scores, self.so_far.started
        lr = self.lr
        train_seconds = time.perf_counter() - started
        task = self.objective.task
        undefined: dict[str, float] = {name: float("nan") for name in scores_for(task.kind, task.level)}
        train = Evaluation(
            float(mean_loss(sums, sums, self.positional)), undefined if scores is None else scores.compute()
        )
        share_statistics(self.network)
        if self.average is not None:
            share_statistics(self.average.network)
        val = self.evaluate(self.val)
        if not np.isfinite(val.loss):
            raise TrainingError(f"the validation loss is {val.loss} after epoch {self.epoch + 1}. {_ADVICE}")
        if self.plateau is not None:
            self.plateau.step(val.loss)
        self.epoch += 1
        seconds = time.perf_counter() - started
        per_second = self.loader.count / train_seconds
        return EpochResult(self.epoch, lr, train, val, seconds, per_second, self.loader.unit)

    def evaluate(self, graphs: PackedGraphs) -> Evaluation:
        """Loss and scores of the network that counts."""
        batch_size = evaluation_batch_size(self.training_config)
        return evaluate(self.reported_network, graphs, self.objective, self.positional, batch_size=batch_size)

    @property
    def lr(self) -> float:
        """The learning rate of the optimizer."""
        return float(self.optimizer.param_groups[0]["lr"])

    def state(self) -> dict[str, Any]:
        """All that training goes on from, as plain values and copies of tensors."""
        return checkpoint.copied(
            {
                "epoch": self.epoch,
                "network": self.network.state_dict(),
                "average": None if self.average is None else self.average.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "plateau": None if self.plateau is None else self.plateau.state_dict(),
            }
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` gave."""
        self.epoch = state["epoch"]
        self.network.load_state_dict(state["network"])
        self._resume = state

    def _restore_optimization(self, state: dict[str, Any]) -> None:
        try:
            self.optimizer.load_state_dict(self.parameters_of_network.state_of(state["optimizer"]))
            if self.average is not None:
                self.average.load_state_dict(state["average"])
            if self.plateau is not None:
                self.plateau.load_state_dict(state["plateau"])
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise TrainingError(
                f"the checkpoint's optimizer or averaged weights are damaged or another run's ({error}): "
                "put back a copy of last.ckpt, or delete it to start again"
            ) from error

    def _not_finite(self, index: int) -> str:
        """The message for a loss that is not a number: which epoch, which batch, which of its graphs or nodes."""
        whole_batches = copy(self.loader)
        whole_batches.rank, whole_batches.world_size = 0, 1
        positions = list(whole_batches.indices())[index]
        numbers = whole_batches.numbers(positions)
        which = f"{self.loader.unit} {_listed(numbers)} of the data"
        if self.loader.unit == "graphs":
            with torch.no_grad():
                batch = whole_batches.batch(positions, index).to(self.device)
                finite = torch.isfinite(self.network.eval().run(batch).output).all(dim=-1)
            bad = numbers[graph_of_target(batch, self.objective.task.level)[~finite].unique().cpu().numpy()]
            if 0 < len(bad) < len(numbers):
                which += f" (of these, the network's output is not finite for {_listed(bad)})"
        return f"the loss is not a number in epoch {self.epoch + 1}, batch {index + 1}: {which}. {_ADVICE}"


_ADVICE = (
    "Look at their targets and features, or lower the learning rate: --set training.protocol.lr=3e-4. "
    "The last checkpoint is that of the epoch before."
)


def _listed(numbers: Any, most: int = 12) -> str:
    shown = ", ".join(str(number) for number in sorted(numbers)[:most])
    return shown if len(numbers) <= most else f"{shown} and {len(numbers) - most} more"
