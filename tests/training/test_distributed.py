"""Two processes on one machine train what one would, and score what one would."""

import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, Trainer
from torch import nn

from lspe.data import GraphData
from lspe.experiment import Experiment, Task
from lspe.experiment.protocol import FastProtocol, Training
from lspe.nn import Head, Network, OGBEmbedder, Topology
from lspe.training import Objective, Run, fit
from lspe.training.fitting import fresh_module, objective_for
from lspe.training.loop import run_epochs
from lspe.training.module import TrainingModule
from tests.small import without_times

Prepared = Callable[..., tuple[Experiment, GraphData]]
PATIENCE = 240.0


def in_two_processes(work: Callable[[], None]) -> None:
    """Run ``work`` in two processes that know of each other as torchrun's do; none may fail or hang."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def one(rank: int) -> None:
        os.environ |= {
            "LOCAL_RANK": str(rank),
            "NODE_RANK": "0",
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        torch.set_num_threads(1)
        work()

    children = [multiprocessing.get_context("fork").Process(target=one, args=(rank,)) for rank in (0, 1)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE)
    hanging = [child for child in children if child.is_alive()]
    for child in hanging:
        child.kill()
    assert not hanging, "the processes wait for each other"
    assert [child.exitcode for child in children] == [0, 0]


class Epochs(Callback):
    """Evaluate after each epoch and remember."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_train_epoch_end(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        result = pl_module.finish_epoch()
        self.losses += [result.train.loss, result.val.loss, *result.train.scores.values(), *result.val.scores.values()]


class Plain(nn.Module):
    """A layer without BatchNorm, which would see only the part of a batch that its process has."""

    def __init__(self) -> None:
        super().__init__()
        self.structure, self.position, self.unused = nn.Linear(16, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, h: Any, p: Any, e: Any, graph: Topology) -> tuple[Any, Any, Any]:
        message = self.structure(torch.cat([h, p], dim=-1))[graph.source] * torch.sigmoid(e)
        total = torch.zeros_like(h).index_add(0, graph.target, message)
        return h + torch.tanh(total), p + torch.tanh(self.position(p)), e


def module_on(data: GraphData, batch_size: int) -> TrainingModule:
    """A network without BatchNorm, ready to train on labels of which some are missing."""
    torch.manual_seed(0)
    network = Network(
        OGBEmbedder(8, 8), [Plain(), Plain()], Head(8, 2), dim=8, encoding="rwpe", k=4, lspe=True, final="structure"
    )
    training = Training(batch_size=batch_size, protocol=FastProtocol(lr=0.01, max_epochs=2, ema=0.9))
    objective = Objective(Task(kind="binary", outputs=2, metric="roc_auc"))
    return TrainingModule(network, objective, training, data.split("train"), data.split("val"), seed=0)


@pytest.mark.parametrize("graphs, batch_size", [(31, 6), (32, 5)])
def test_the_gradient_is_that_of_the_whole_batch(
    prepared: Prepared, tmp_path: Path, graphs: int, batch_size: int
) -> None:
    """Uneven parts, missing labels, unused parameters, and a last batch that leaves one process without a graph."""
    _, data = prepared("binary")
    data = replace(data, splits={**data.splits, "train": data.splits["train"][:graphs]})

    def train(epochs: Epochs, processes: int) -> TrainingModule:
        module = module_on(data, batch_size)
        run_epochs(module, epochs, 2, device="cpu", devices=processes)
        return module

    def train_in_two() -> None:
        epochs = Epochs()
        module = train(epochs, 2)
        torch.save((module.state(), epochs.losses), tmp_path / os.environ["LOCAL_RANK"])

    in_two_processes(train_in_two)
    alone = Epochs()
    expected = train(alone, 1).state()
    for rank in ("0", "1"):
        state, losses = torch.load(tmp_path / rank, weights_only=True)
        assert losses == pytest.approx(alone.losses, rel=1e-4, nan_ok=True)
        for part, weights in (("network", expected["network"]), ("average", expected["average"]["network"])):
            ours = state[part] if part == "network" else state[part]["network"]
            for name, value in weights.items():
                assert torch.allclose(ours[name], value, atol=1e-5), f"{part}: {name}"


@pytest.mark.parametrize("batch_size", [8, 31])
def test_batch_norm_over_all_processes_makes_their_number_indifferent(
    prepared: Prepared, tmp_path: Path, batch_size: int
) -> None:
    """Twenty steps; of 32 graphs, batches of 31 leave one process without a graph in each second batch."""
    epochs = 20 * batch_size // 32 if batch_size < 16 else 10
    settings = ("training.sync_batch_norm=true", f"training.batch_size={batch_size}", "model.dropout=0")
    experiment, data = prepared("regression", *settings, f"training.protocol.max_epochs={epochs}")

    def losses(processes: int) -> list[float]:
        kept = Epochs()
        module = fresh_module(experiment, data, objective_for(experiment, data))
        run_epochs(module, kept, epochs, device="cpu", devices=processes)
        return kept.losses

    in_two_processes(lambda: torch.save(losses(2), tmp_path / os.environ["LOCAL_RANK"]))
    alone = losses(1)
    for rank in ("0", "1"):
        assert torch.load(tmp_path / rank, weights_only=True) == pytest.approx(alone, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_two_processes_write_one_run_and_score_as_one(prepared: Prepared, tmp_path: Path, task: str) -> None:
    settings = ("training.protocol.max_epochs=3", "training.batch_size=7", "model.final=structure")
    experiment, data = prepared(task, *settings)
    folder = tmp_path / "run"

    def train() -> None:
        fit(experiment, data, folder, device="cpu", devices=2, threads=1)

    in_two_processes(train)
    run = Run.open(folder)
    assert [row["epoch"] for row in run.history] == [1, 2, 3]
    assert run.summary["hardware"]["devices"] == 2
    for which in ("last", "best"):
        for split, scores in run.summary[which].items():
            if split != "epoch":
                alone = run.evaluate(data.split(split), which).to_dict()
                assert scores == {name: _about(value) for name, value in alone.items()}
    assert run.history[-1]["val_loss"] == pytest.approx(run.summary["last"]["val"]["loss"], rel=1e-5)


WATCHED = """
import atexit, sys
import lspe
from torch import distributed

atexit.register(lambda: print("together" if distributed.is_initialized() else "parted", file=sys.stderr))
settings = ["model.layers=1", "model.hidden_dim=8"]
lspe.train(sys.argv[1], out=sys.argv[2], epochs=1, device="cpu", devices=2, threads=1, settings=settings)
"""


def test_processes_part_before_python_ends(tables: dict[str, Path], tmp_path: Path) -> None:
    """What is still connected then is aborted now and then, and the first process is killed with its run unfinished."""
    script = tmp_path / "watched.py"
    script.write_text(WATCHED)
    arguments = [sys.executable, script, tables["regression"], tmp_path / "run"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "parted\n" * 2)
    assert Run.open(tmp_path / "run").is_finished


def test_two_processes_go_on_where_they_stopped(prepared: Prepared, tmp_path: Path) -> None:
    experiment, data = prepared(
        "binary", "training.protocol.max_epochs=4", "training.batch_size=7", "model.dropout=0.3"
    )

    def train(folder: Path, resume: bool = False) -> None:
        fit(experiment, data, folder, device="cpu", devices=2, threads=1, resume=resume, checkpoint_every=0)

    def killed() -> None:
        def until(self: TrainingModule) -> Any:
            if self.epoch == 2:
                os._exit(0)
            return finish(self)

        finish = TrainingModule.finish_epoch
        TrainingModule.finish_epoch = until  # type: ignore[method-assign]
        train(tmp_path / "run")

    in_two_processes(killed)
    assert not Run.open(tmp_path / "run").is_finished
    in_two_processes(lambda: train(tmp_path / "run", resume=True))
    in_two_processes(lambda: train(tmp_path / "whole"))
    one, other = Run.open(tmp_path / "run"), Run.open(tmp_path / "whole")
    assert without_times(one.history) == without_times(other.history)
    for ours, theirs in zip(one.network().state_dict().values(), other.network().state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)


def test_one_process_goes_on_with_the_run_of_two(prepared: Prepared, tmp_path: Path) -> None:
    settings = ("training.sync_batch_norm=true", "training.protocol.max_epochs=4", "training.batch_size=8")
    experiment, data = prepared("regression", *settings, "model.dropout=0")

    def train(name: str, devices: int, resume: bool = False) -> Run:
        options: dict[str, Any] = {"device": "cpu", "threads": 1, "resume": resume, "checkpoint_every": 0}
        return fit(experiment, data, tmp_path / name, devices=devices, **options)

    def preempted() -> None:
        def until(self: TrainingModule) -> Any:
            if self.epoch == 2:
                os._exit(0)
            return finish(self)

        finish = TrainingModule.finish_epoch
        TrainingModule.finish_epoch = until  # type: ignore[method-assign]
        train("run", 2)

    in_two_processes(preempted)
    losses = [row["val_loss"] for row in train("run", 1, resume=True).history]
    assert losses == pytest.approx([row["val_loss"] for row in train("whole", 1).history], rel=1e-4)


def _about(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-5, abs=1e-6)
