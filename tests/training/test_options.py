"""Optimiser, schedule, accumulation, precision, callbacks and loggers, each by its name."""

import csv
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor, nn

from lspe.config import ConfigError
from lspe.data import GraphData
from lspe.errors import UserError
from lspe.experiment import Experiment, override
from lspe.experiment.protocol import OPTIMIZERS, FastProtocol
from lspe.nn import Head, Network, OGBEmbedder
from lspe.training import Interrupted, Run, fit
from lspe.training.flat import FlatParameters
from lspe.training.module import STEPS_AT_ONCE
from lspe.training.optimizer import arrange, make_optimizer
from lspe.training.seeds_and_folds import train as train_all
from tests.small import without_times
from tests.training.test_resume import Until, assert_same

Prepared = Callable[..., tuple[Experiment, GraphData]]


def train(experiment: Experiment, data: GraphData, folder: Path, **options: Any) -> Run:
    return fit(experiment, data, folder, device="cpu", threads=1, checkpoint_every=0.0, **options)


def protocol(**values: Any) -> list[str]:
    return [f"training.protocol.{name}={value}" for name, value in values.items()]


COMBINATIONS = {
    "onecycle": [
        *protocol(optimizer="adamw", decay="weights", weight_decay=0.1, schedule="onecycle", warmup=0.3, clip=1.0),
        *("training.accumulate=3", "training.precision=bf16"),
    ],
    "none": protocol(optimizer="sgd", optimizer_args="{momentum: 0.9}", schedule="none", ema="null", clip="null"),
    "plateau": protocol(optimizer="radam", schedule="plateau", warmup=0, patience=0, decay="weights", weight_decay=0.1),
}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_every_combination_goes_on_to_the_last_bit(name: str, prepared: Prepared, tmp_path: Path) -> None:
    settings = [*COMBINATIONS[name], "training.protocol.max_epochs=5", "model.dropout=0.2", "training.protocol.lr=5e-3"]
    experiment, data = prepared("regression", *settings)
    whole = train(experiment, data, tmp_path / "whole")
    assert whole.history[-1]["train_loss"] < whole.history[0]["train_loss"]
    with pytest.raises(Interrupted):
        train(experiment, data, tmp_path / "run", progress=Until(2, 2, lambda: signal.raise_signal(signal.SIGINT)))
    assert_same(train(experiment, data, tmp_path / "run", resume=True), whole)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_is_torchs_own(name: str) -> None:
    """With parameters in two vectors as with single tensors in two groups."""
    torch.manual_seed(0)
    one = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Tanh(), nn.Linear(7, 3))
    other = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Tanh(), nn.Linear(7, 3))
    other.load_state_dict(one.state_dict())
    chosen = FastProtocol(optimizer=name, lr=0.01, weight_decay=0.3, decay="weights")
    flat = arrange(one, chosen)
    assert [sum(x.numel() for x in group) for group in flat.groups] == [5 * 7 + 7 * 3, 7 + 7 + 7 + 3]
    ours = make_optimizer(flat, chosen)
    groups = [
        {"params": [other[0].weight, other[3].weight], "weight_decay": 0.3},
        {"params": [other[0].bias, other[1].weight, other[1].bias, other[3].bias], "weight_decay": 0.0},
    ]
    kinds = {kind.__name__.lower(): kind for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam)}
    kinds |= {"radam": torch.optim.RAdam, "sgd": torch.optim.SGD}
    theirs = kinds[name](groups, lr=0.01)
    for _ in range(10):
        batch = torch.randn(16, 5)
        flat.forget_gradients()
        one(batch).square().mean().backward()
        flat.gather_gradients()
        ours.step()
        theirs.zero_grad()
        other(batch).square().mean().backward()
        theirs.step()
    for mine, expected in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, expected)
    single = theirs.state_dict()
    ours.load_state_dict(flat.state_of(single))
    if name != "sgd":
        joined = torch.cat([single["state"][number]["exp_avg"].flatten() for number in (0, 1)])
        assert torch.equal(ours.state[flat.groups[0][0]]["exp_avg"], joined)


class NoNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(16, 16)

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: object) -> tuple[Tensor, Tensor | None, Tensor]:
        return h + torch.tanh(self.W(h)), p, e


def test_batches_that_are_accumulated_are_one_large_batch(prepared: Prepared, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = Network(OGBEmbedder(16, 16), [NoNorm()], Head(16, 1), dim=16)
    plain = protocol(optimizer="sgd", schedule="none", warmup=0, ema="null", max_epochs=2)
    weights = []
    for size, accumulate in ((16, 1), (8, 2)):
        experiment, data = prepared("regression", *plain, f"training.accumulate={accumulate}")
        assert len(data.split("train")) == 32
        experiment = override(experiment, [f"training.batch_size={size}"])
        run = train(experiment, data, tmp_path / str(size), network=network)
        weights.append(run.network().state_dict())
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, msg=name)
    assert not torch.equal(weights[0]["head.out.weight"], network.head.out.weight)


def test_what_is_left_over_is_a_step_too(prepared: Prepared, tmp_path: Path) -> None:
    """Four batches, three to a step: two steps per epoch, and the learning rate goes by steps."""
    experiment, data = prepared("regression", "training.accumulate=3", *protocol(max_epochs=2, warmup=0))
    run = train(experiment, data, tmp_path / "run")
    steps = run.checkpoint("last")["optimizer"]["state"][0]["step"]
    assert steps == 4
    assert [row["lr"] for row in run.history] == pytest.approx(
        [experiment.training.protocol.learning_rate(step, 4) for step in (1, 3)]
    )


@pytest.mark.parametrize(
    "model",
    [
        "model.name=gatedgcn",
        "model={name: pna, layers: 2, hidden_dim: 16, edge_dim: 4, lspe: true, encoding: rwpe, k: 4}",
        "model={name: san, layers: 2, hidden_dim: 16, heads: 2, lspe: true, encoding: rwpe, k: 4}",
        "model={name: graphit, layers: 2, hidden_dim: 16, heads: 2, lspe: true, encoding: rwpe, k: 4}",
        "model={name: gps, layers: 2, hidden_dim: 16, heads: 2, lspe: true, encoding: rwpe, k: 4}",
        "model={name: lspe, conv: GATv2Conv, layers: 2, hidden_dim: 16, lspe: true, encoding: rwpe, k: 4}",
    ],
)
def test_bf16(model: str, prepared: Prepared, tmp_path: Path) -> None:
    seen: set[torch.dtype] = set()

    class Look(Callback):
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            pl_module.network.head.out.register_forward_hook(lambda _, __, output: seen.add(output.dtype))

    experiment, data = prepared("regression", model, "training.precision=bf16", *protocol(max_epochs=2, ema="null"))
    run = train(experiment, data, tmp_path / "run", callbacks=[Look()])
    assert seen == {torch.bfloat16, torch.float32}, "training in bfloat16, validation in float32"
    assert {value.dtype for value in run.network().state_dict().values() if value.is_floating_point()} == {
        torch.float32
    }
    assert run.history[-1]["train_loss"] < 10 * run.history[0]["train_loss"]


def test_one_cycle_is_torchs() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=50, pct_start=0.3)
    expected = []
    for _ in range(50):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    chosen = FastProtocol(lr=0.5, schedule="onecycle", warmup=0.3)
    assert [chosen.learning_rate(step, 50) for step in range(50)] == pytest.approx(expected)


def test_without_a_schedule_the_rate_stays_after_the_warm_up() -> None:
    chosen = FastProtocol(lr=0.5, schedule="none", warmup=0.2)
    assert [chosen.learning_rate(step, 10) for step in range(10)] == pytest.approx([0.25] + [0.5] * 9)


@pytest.mark.parametrize(
    "settings, message",
    [
        (protocol(optimizer="adamm"), "unknown optimizer 'adamm': did you mean 'adam'?"),
        (protocol(schedule="cosin"), "training.protocol.fast.schedule: Input should be 'plateau', 'cosine'"),
        (protocol(schedule="plateau", patience=3), "takes a patience, 25 for instance, and no warmup: warmup=0"),
        (protocol(schedule="onecycle", warmup=0), "needs a warmup, the part of all steps in which the rate rises"),
        (protocol(patience=0), "patience 0 would stop after the first epoch"),
        (["training.accumulate=0"], "accumulate"),
        (["training.precision=float16"], "precision: Input should be 'float32' or 'bf16'"),
    ],
)
def test_what_cannot_be_is_said(settings: list[str], message: str, prepared: Prepared) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        prepared("regression", *settings)


MODULE = """
import torch

class Signs(torch.optim.Optimizer):
    shapes = []

    def __init__(self, params, lr, slope=1.0):
        super().__init__(params, {"lr": lr, "slope": slope})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                self.shapes.append(parameter.dim())
                if parameter.grad is not None:
                    parameter -= group["lr"] * group["slope"] * parameter.grad.sign()

number = 3
def nothing(params): return None
"""


def test_an_optimizer_of_ones_own(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_optimizers.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    own = protocol(optimizer="my_optimizers:Signs", optimizer_args="{slope: 0.5}", max_epochs=4)
    run = train(*prepared("regression", *own), tmp_path / "run")
    assert run.history[-1]["train_loss"] < run.history[0]["train_loss"]
    assert 2 in sys.modules["my_optimizers"].Signs.shapes, "parameters as they are, not one vector"
    for name, message in (
        ("my_optimizers:number", "is a int, not a class or a function"),
        ("my_optimizers:nothing", "gives a NoneType, not a torch.optim.Optimizer"),
        ("my_optimizers:Others", "has no 'Others'"),
    ):
        with pytest.raises(UserError, match=message):
            train(*prepared("regression", *protocol(optimizer=name)), tmp_path / "wrong")
    with pytest.raises(UserError, match=r"optimizer_args: torch.optim:AdamW takes no 'beta'"):
        train(*prepared("regression", *protocol(optimizer_args="{beta: 1}")), tmp_path / "wrong")


def test_callbacks_see_every_batch_and_training_is_the_same_without_them(prepared: Prepared, tmp_path: Path) -> None:
    """Without them several steps are one of Lightning's."""
    seen: list[int] = []

    class Look(Callback):
        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            seen.append(batch.num_graphs)

    settings = ("training.batch_size=3", "training.accumulate=2", *protocol(max_epochs=2))
    experiment, data = prepared("regression", *settings)
    watched = train(experiment, data, tmp_path / "watched", callbacks=[Look()])
    steps, rest = divmod(len(data.splits["train"]), 3)
    assert steps > STEPS_AT_ONCE
    assert seen == 2 * ([3] * steps + [rest] * (rest > 0))
    alone = train(experiment, data, tmp_path / "alone")
    assert without_times(alone.history) == without_times(watched.history)
    assert alone.summary["reported"] == watched.summary["reported"]


def test_callbacks_may_stop_and_loggers_are_told_every_epoch(prepared: Prepared, tmp_path: Path) -> None:
    experiment, data = prepared("regression", *protocol(max_epochs=20))
    logger = CSVLogger(tmp_path / "log")
    stop = EarlyStopping("val_loss", min_delta=1e9, patience=2)
    run = train(experiment, data, tmp_path / "run", callbacks=[stop], loggers=[logger])
    assert (run.summary["epochs"], run.summary["stopped"]) == (3, "a callback stopped it")
    with (Path(logger.log_dir) / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["step"]), float(row["val_mae"])) for row in rows] == [
        (row["epoch"], pytest.approx(row["val_mae"])) for row in run.history
    ]
    assert "hidden_dim: 16" in (Path(logger.log_dir) / "hparams.yaml").read_text()
    before = without_times(run.history)
    again = train(experiment, data, tmp_path / "run", resume=True)
    assert without_times(again.history) == before, "what a callback ended stays ended"


def test_each_of_several_trainings_has_its_own_callbacks(prepared: Prepared, tmp_path: Path) -> None:
    experiment, data = prepared("regression", *protocol(max_epochs=20))
    several = experiment.model_copy(update={"seeds": (1, 2)})
    options = {"device": "cpu", "threads": 1}
    stop = EarlyStopping("val_loss", min_delta=1e9, patience=2)
    train_all(several, data, tmp_path / "run", callbacks=[stop], **options)
    assert [Run.open(tmp_path / "run" / f"seed{seed}").summary["epochs"] for seed in (1, 2)] == [3, 3]
    with pytest.raises(UserError, match="a logger is for one training, and these are 2"):
        train_all(several, data, tmp_path / "other", loggers=[CSVLogger(tmp_path / "log")], **options)
    with pytest.raises(UserError, match=r"checkpoints of its own, last.ckpt and best.ckpt: leave the callback out"):
        train(experiment, data, tmp_path / "third", callbacks=[ModelCheckpoint()])


def test_arranged_in_the_same_way() -> None:
    model = nn.Linear(3, 2)
    flat = FlatParameters(model.parameters(), [1, 0])
    other = flat.like_these(nn.Linear(3, 2).parameters())
    assert [x.shape for x in other.tensors] == [x.shape for x in flat.tensors] == [(2,), (6,)]
