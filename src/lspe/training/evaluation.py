"""How good a network is on a set of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lspe.data import BatchLoader, PackedGraphs
from lspe.data.packed.assembly import as_tensor
from lspe.data.words import Level
from lspe.devices import home_of_float64
from lspe.experiment.protocol import PositionalLoss, Training
from lspe.nn import Network, positional_loss
from lspe.nn.blocks import run_bounded
from lspe.training.distributed import add_up, rank, world_size
from lspe.training.objective import Objective

if TYPE_CHECKING:
    from torch_geometric.data import Batch

EVALUATION_BATCH = 256


def evaluation_batch_size(training: Training) -> int:
    """As in training where the positional loss depends on it, otherwise at least as large as is quick."""
    if training.positional_loss is not None:
        return training.batch_size
    return max(training.batch_size, EVALUATION_BATCH)


def loss_sums(
    output: Tensor, p: Tensor | None, batch: Batch, objective: Objective, positional: PositionalLoss | None
) -> Tensor:
    """The parts of the loss of a batch, as sums that may be added over batches and processes, ``[4]``.

    Losses of the known targets; their weights; positional loss, of final positions p, times graphs; graphs.
    """
    task, share = objective.loss(output, batch.y, _weights(batch, objective.task.level))
    graphs = task.new_tensor(float(batch.num_graphs))
    if positional is None or p is None:
        return torch.stack([task, share, torch.zeros_like(task), graphs])
    position = positional_loss(
        p,
        batch.edge_index,
        batch.batch,
        batch.num_graphs,
        weight=positional.weight,
        scaling=positional.scaling,
    )
    return torch.stack([task, share, position * graphs, graphs])


def _weights(batch: Batch, level: Level) -> Tensor | None:
    """How much each target counts; a weight of a graph is that of each of its nodes, edges or pairs."""
    weight = getattr(batch, "weight", None)
    if weight is None or weight.numel() == len(batch.y):
        return weight
    return weight.view(-1)[graph_of_target(batch, level)]


def graph_of_target(batch: Batch, level: Level) -> Tensor:
    """Which graph of the batch each row of targets and of the network's output belongs to."""
    if level == "graph":
        return torch.arange(batch.num_graphs, device=batch.batch.device)
    if level == "node":
        return batch.batch
    return batch.batch[(batch.edge_index if level == "edge" else batch.edge_label_index)[0]]


def mean_loss(sums: Tensor, over: Tensor, positional: PositionalLoss | None) -> Tensor:
    r"""Task loss :math:`+ \alpha` · positional loss, with the numerators of ``sums`` and the denominators of ``over``.

    Both are as :func:`loss_sums` gives them; a batch without any known target has task loss zero.
    """
    loss = sums[0] / torch.where(over[1] > 0, over[1], 1.0)
    return loss if positional is None else loss + positional.alpha * sums[2] / over[3].clamp(min=1)


@dataclass(frozen=True)
class Evaluation:
    """Loss and scores over a whole split."""

    loss: float
    scores: dict[str, float]

    def to_dict(self) -> dict[str, float | None]:
        """For JSON, where a score that is not defined is ``null``."""
        return {name: None if value != value else value for name, value in {"loss": self.loss, **self.scores}.items()}


def evaluate(
    network: Network,
    graphs: PackedGraphs,
    objective: Objective,
    positional: PositionalLoss | None = None,
    *,
    batch_size: int = EVALUATION_BATCH,
) -> Evaluation:
    """Loss and scores of ``network``, in evaluation mode, over all ``graphs``.

    Where several processes run, each takes a part of every batch and all get the same result.
    """
    [evaluation] = evaluate_parts(network, graphs, [graphs], objective, positional, batch_size=batch_size)
    return evaluation


@torch.inference_mode()
def evaluate_parts(
    network: Network,
    graphs: PackedGraphs,
    parts: Sequence[PackedGraphs],
    objective: Objective,
    positional: PositionalLoss | None = None,
    *,
    batch_size: int = EVALUATION_BATCH,
) -> list[Evaluation]:
    """The same for several ``parts`` of the targets of ``graphs``: views of these in which other targets are known.

    The network sees the graphs once.
    """
    device = next(network.parameters()).device
    was_training = network.training
    network.eval()
    scores = [objective.scores().to(device) for _ in parts]
    sums = torch.zeros(len(parts), 4, dtype=torch.float64, device=home_of_float64(device))
    loader = BatchLoader(graphs, batch_size, rank=rank(), world_size=world_size())
    for indices, batch in zip(loader.indices(), loader, strict=True):
        batch = batch.to(device)
        if batch.num_graphs == 0:
            for one in scores:
                one.update(torch.zeros(0, objective.task.outputs, device=device), batch.y)
            continue
        targets = objective.known(batch.y) if objective.task.level == "node" and positional is None else None
        result = run_bounded(network, batch, targets)
        for number, part in enumerate(parts):
            if part is not graphs:
                batch.y = as_tensor(part.select(indices).y).to(device)
            sums[number] += loss_sums(result.output, result.p, batch, objective, positional).to(sums.device)
            scores[number].update(result.output, batch.y)
    network.train(was_training)
    return [
        Evaluation(float(mean_loss(total, total, positional)), one.compute())
        for total, one in zip(add_up(sums), scores, strict=True)
    ]
