"""Training and scoring on a device that has no float64, as Apple's, give what they give on the CPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from lspe import ops
from lspe.data import GraphData
from lspe.devices import has_float64
from lspe.experiment import Experiment, build_network
from lspe.experiment.data import fit_to_data
from lspe.training import evaluate
from lspe.training.fitting import objective_for
from lspe.training.module import EpochResult, TrainingModule
from tests.apple import apple_device

Prepared = Callable[..., tuple[Experiment, GraphData]]
LOSS = "training.positional_loss={alpha: 1, weight: 0.1}"
CASES = [
    ("regression", ("model.size_norm=false",)),
    ("binary", ("model.size_norm=false", LOSS)),
    ("multiclass", ("model.size_norm=false",)),
    ("regression", ("model={name: graphit, layers: 2, hidden_dim: 16, heads: 2}",)),
    ("regression", ("model={name: san, layers: 2, hidden_dim: 16, heads: 2, lspe: true, encoding: lappe, k: 3}",)),
    ("regression", ("model={name: pna, layers: 2, hidden_dim: 16, edge_dim: 4, size_norm: false}",)),
]


@pytest.fixture(autouse=True)
def plain_operators() -> Any:
    with ops.use("plain"):
        yield


def make_module(experiment: Experiment, data: GraphData) -> TrainingModule:
    experiment = fit_to_data(experiment, data)
    objective = objective_for(experiment, data)
    torch.manual_seed(1)
    return TrainingModule(
        build_network(experiment), objective, experiment.training, data.split("train"), data.split("val"), seed=1
    )


def epoch_on(device: torch.device, module: TrainingModule) -> EpochResult:
    """What Lightning's trainer does in an epoch."""
    module.to(device)
    module.manual_backward = lambda loss: loss.backward()  # type: ignore[method-assign]
    module.configure_optimizers()
    module.on_train_epoch_start()
    for number, batch in enumerate(module.train_dataloader()):
        module.training_step(batch.to(device), number)
    return module.finish_epoch()


@pytest.mark.parametrize("task, settings", CASES)
def test_an_epoch(prepared: Prepared, task: str, settings: tuple[str, ...]) -> None:
    experiment, data = prepared(task, *settings)
    expected = epoch_on(torch.device("cpu"), make_module(experiment, data))
    with apple_device() as device:
        assert not has_float64(device)
        module = make_module(experiment, data)
        result = epoch_on(device, module)
        assert next(module.network.parameters()).device == device
    for ours, theirs in ((result.train, expected.train), (result.val, expected.val)):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-4)
        assert ours.scores == pytest.approx(theirs.scores, rel=1e-4, nan_ok=True)


@pytest.mark.parametrize("task, settings", CASES)
def test_scores_are_those_of_the_cpu_to_the_bit(prepared: Prepared, task: str, settings: tuple[str, ...]) -> None:
    """The network computes the same, so its sums and scores are the same."""
    experiment, data = prepared(task, *settings)
    module = make_module(experiment, data)
    expected = evaluate(module.network, data.split("train"), module.objective, module.positional, batch_size=8)
    with apple_device() as device:
        network = module.network.to(device)
        result = evaluate(network, data.split("train"), module.objective, module.positional, batch_size=8)
    assert result == expected
