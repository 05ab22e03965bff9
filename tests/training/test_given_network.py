"""A network that is put together in Python is trained, goes on, and predicts where it is given again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv

import lspe
from lspe.data import GraphData, from_pyg
from lspe.errors import UserError
from lspe.experiment import Experiment, load_data
from lspe.nn import LSPE, CategoricalEmbedder, Head, Network, OGBEmbedder, embedder_for
from lspe.training import Run, fit
from tests import levels
from tests.small import without_times

D, K = 16, 4


class Sine(nn.Module):
    """A layer that no configuration can name, for its frequency is drawn when it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.frequency = float(torch.rand(()))

    def forward(self, h: Tensor, p: Tensor, e: Tensor, graph: object) -> tuple[Tensor, Tensor, Tensor]:
        return torch.sin(self.frequency * h), p, e


def network(seed: int = 0, outputs: int = 1, readout: str = "mean", embedder: nn.Module | None = None) -> Network:
    torch.manual_seed(seed)
    wrapped = LSPE(GATv2Conv(2 * D, D, edge_dim=D), GATv2Conv(D, D, edge_dim=D))
    options = {"dim": D, "encoding": "rwpe", "k": K, "lspe": True, "final": "structure+position", "readout": readout}
    return Network(embedder or OGBEmbedder(D, D), [wrapped, Sine()], Head(D, outputs), **options)


def weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


@pytest.fixture
def trained(tables: dict[str, Path], tmp_path: Path) -> tuple[Network, Run]:
    mine = network()
    options = {"preset": "own/gatedgcn-lspe", "epochs": 3, "threads": 1, "settings": {"training.batch_size": 8}}
    return mine, lspe.train(tables["regression"], network=mine, out=tmp_path / "run", **options)


def test_it_learns_as_a_copy_and_predicts_where_it_is_given_again(trained: tuple[Network, Run]) -> None:
    mine, run = trained
    fresh = weights(network())
    assert all(torch.equal(value, fresh[name]) for name, value in mine.state_dict().items()), "it stays as it is"
    assert run.history[-1]["train_loss"] < run.history[0]["train_loss"]
    assert (run.config.model.name, run.config.model.made_of, run.config.model.k) == ("object", "LSPE, Sine", K)
    assert run.network().layers[1].frequency == mine.layers[1].frequency
    assert run.summary["parameters"] == sum(one.numel() for one in mine.parameters())
    again = network()
    with torch.no_grad():
        again.head.out.weight.fill_(7.0)  # the weights are those of the run
    values = np.asarray(lspe.load(run.path, network=again).predict(["CCO", "c1ccccc1"]))
    assert np.array_equal(values, np.asarray(lspe.load(run.path, network=mine).predict(["CCO", "c1ccccc1"])))
    assert np.isfinite(values).all()
    for later in (lambda: lspe.load(run.path), lambda: Run.open(run.path).network()):
        with pytest.raises(UserError, match=r"given as an object in Python \(layers of LSPE, Sine\): give it ag"):
            later()


def test_it_goes_on_to_the_same_end(
    prepared: Callable[..., tuple[Experiment, GraphData]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, data = prepared("regression", "training.protocol.max_epochs=4", "model.k=4")
    options = {"device": "cpu", "threads": 1, "network": network(), "checkpoint_every": 0.0}
    whole = fit(experiment, data, tmp_path / "whole", **options)
    with monkeypatch.context() as patch:
        patch.setattr("lspe.training.callbacks.reason_to_stop", _stop_after_two)
        patch.setattr("lspe.training.fitting.make_summary", lambda *_: {})
        fit(experiment, data, tmp_path / "run", **options)
    (tmp_path / "run" / "summary.json").unlink()
    run = fit(experiment, data, tmp_path / "run", resume=True, **options)
    assert without_times(run.history) == without_times(whole.history)
    assert run.summary["reported"] == whole.summary["reported"]


def _stop_after_two(*_: object, epoch: int, **__: object) -> str:
    return "two are enough" if epoch == 2 else ""


def test_several_seeds_begin_with_its_weights(tables: dict[str, Path], tmp_path: Path) -> None:
    still = {"training.batch_size": 8, "training.protocol.lr": 1e-12, "training.protocol.ema": 0}
    options = {"preset": "own/gatedgcn-lspe", "epochs": 1, "threads": 1, "settings": still, "seeds": [1, 2]}
    mine = network()
    run = lspe.train(tables["regression"], network=mine, out=tmp_path / "run", **options)
    for name in ("seed1", "seed2"):
        trained = Run.open(run.path / name, mine).network()
        torch.testing.assert_close(trained.head.out.weight, mine.head.out.weight, atol=1e-9, rtol=0)
    assert len(lspe.load(run.path, network=mine).members) == 2


def test_nodes(tmp_path: Path) -> None:
    graphs = levels.many_graphs(20)
    embedder = embedder_for(from_pyg(graphs).features, D, D)
    mine = network(outputs=2, readout="none", embedder=embedder)
    with pytest.raises(UserError, match=r"has 2 outputs, but .* task with 3: give it a Head\(…, outputs=3\)"):
        lspe.train(graphs, network=mine, epochs=1, out=tmp_path / "wrong", threads=1)
    mine = network(outputs=3, readout="none", embedder=embedder)
    run = lspe.train(graphs, network=mine, epochs=1, out=tmp_path / "run", threads=1)
    assert run.config.task.level == "node"
    pooling = network(embedder=embedder)
    with pytest.raises(UserError, match=r"readout='mean' gives an output per graph, but targets are those of nodes"):
        lspe.train(graphs, network=pooling, epochs=1, out=tmp_path / "graph", threads=1)
    with pytest.raises(UserError, match=r"reads out 'mean', but the targets are those of nodes: .* readout='none'"):
        fit(run.config, load_data(run.config), tmp_path / "graph", network=pooling, threads=1)


def test_what_is_no_network_for_the_data_is_said(tables: dict[str, Path], tmp_path: Path) -> None:
    options = {"preset": "own/gatedgcn-lspe", "epochs": 1, "threads": 1, "out": tmp_path / "run"}
    with pytest.raises(UserError, match=r"network is a Linear, not an lspe.nn.Network: put its parts together"):
        lspe.train(tables["regression"], network=nn.Linear(2, 2), **options)
    mine = network(embedder=CategoricalEmbedder(3, 2, D, D))
    with pytest.raises(UserError, match=r"fails on two graphs of .*Their features are .*'kind': 'ogb'"):
        lspe.train(tables["regression"], network=mine, **options)
    assert not list((tmp_path / "run").glob("*.ckpt"))
