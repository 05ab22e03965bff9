"""Training on samples of the neighbourhoods of nodes, as for large graphs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lspe
from lspe.config import ConfigError
from lspe.data import GraphData, NeighbourLoader, from_pyg
from lspe.experiment import Experiment, GraphSource, read_experiment, sampling, with_own_data
from lspe.experiment.data import fit_to_data
from lspe.experiment.overriding import override
from lspe.nn import blocks
from lspe.training.fitting import fit, fresh_module, objective_for
from lspe.training.module import TrainingError
from lspe.training.seeds_and_folds import evaluate_runs
from tests.levels import SMALL, edges_of_one_graph, many_graphs, one_graph
from tests.small import without_times
from tests.training.test_distributed import in_two_processes

PRESET = "own/one-graph-gatedgcn-lspe"
SETTINGS = {
    **SMALL,
    "training.neighbours": [3, 2],
    "training.nodes_per_step": 16,
    "model.dropout": 0.0,
    "model.head_dropout": 0.0,
}


def fitted(data: GraphData, *settings: str, preset: str = PRESET) -> Experiment:
    experiment = override(
        with_own_data(read_experiment(preset), GraphSource(path="mine.lspe")), ["model.layers=2", *settings]
    )
    encoded = data.with_encodings(experiment.model.encodings)
    return fit_to_data(experiment, encoded)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> lspe.Run:
    return lspe.train(one_graph(), out=tmp_path_factory.mktemp("sampled") / "run", epochs=15, settings=SETTINGS)


def test_targets_are_learned_from_samples(run: lspe.Run) -> None:
    assert run.summary["reported"]["test"]["accuracy"] > 85 > 75 > run.summary["constant"]["test"]["accuracy"]
    assert run.config.training.neighbours == (3, 2)
    assert "nodes_per_second" in run.history[0]


def test_in_blocks_a_run_is_evaluated_and_predicts_the_same(run: lspe.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lspe.load(run.path).predict(one_graph())
    monkeypatch.setattr(blocks, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(blocks, "EDGES_PER_BLOCK", 100)
    np.testing.assert_allclose(lspe.load(run.path).predict(one_graph()), whole, atol=1e-5)
    for split in ("val", "test"):
        [scores] = evaluate_runs(run.path, split).values()
        assert scores == pytest.approx(run.summary["reported"][split], rel=1e-4)


@pytest.mark.parametrize("preset", ["zinc/gatedgcn-lspe", "zinc/pna-lspe"])
def test_a_run_goes_on_as_if_it_had_never_stopped(preset: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {**SETTINGS, "model.dropout": 0.2, "model.size_norm": False}
    settings |= {"model.normalize_positions": False, "model.hidden_dim": 20}
    options: dict[str, Any] = {"preset": preset, "settings": settings}
    whole = lspe.train(one_graph(), out=tmp_path / "whole", epochs=4, **options)
    lspe.train(one_graph(), out=tmp_path / "parts", epochs=2, **options)
    parts = lspe.train(tmp_path / "parts", epochs=4, resume=True)
    assert without_times(parts.history) == without_times(whole.history)
    assert parts.summary["reported"] == whole.summary["reported"]


def test_with_all_neighbours_the_loss_is_that_of_the_whole_graph() -> None:
    """In evaluation mode, where BatchNorm is no matter of the batch."""
    data = from_pyg(one_graph()).with_encoding("rwpe", 4)
    experiment = fitted(data, "model.k=4", "training.neighbours=[1000, 1000]", "training.nodes_per_step=7")
    module = fresh_module(experiment, data, objective_for(experiment, data))
    network = module.network.double().eval()
    with torch.no_grad():
        whole = network(data.split("train").batch())
        rows = 0
        for indices, batch in zip(module.loader.indices(), module.loader, strict=True):
            known = batch.y >= 0
            nodes = np.sort(module.loader.numbers(indices))
            torch.testing.assert_close(network(batch)[known], whole[nodes], rtol=0, atol=1e-10)
            rows += int(known.sum())
    assert rows == int(data.split("train").known_targets.sum())


def test_large_graphs_are_sampled_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_AT_ONCE", 100)
    data = from_pyg(one_graph(300))
    chosen = fitted(data)
    assert chosen.training.neighbours == (10, 5)
    assert fitted(data, "model.layers=6").training.neighbours == (10, 5, 3, 2, 1, 1)
    assert "a graph of 300 nodes: each step learns from 256 nodes" in sampling.sampling_in_words(chosen, data)
    assert fitted(data, "training.neighbours=[]").training.neighbours == ()
    small = fitted(from_pyg(many_graphs(10)))
    assert (small.training.neighbours, sampling.sampling_in_words(small, data)) == (None, "")
    assert fitted(from_pyg(edges_of_one_graph(150))).training.neighbours is None
    assert fitted(data, "model.size_norm=true").training.neighbours is None
    assert fitted(data, preset="zinc/san-lspe").training.neighbours is None


def test_an_epoch_has_as_many_steps_as_make_up_the_nodes() -> None:
    data = from_pyg(one_graph(300))
    labelled = len(data.splits["train"])
    sampled = fitted(data, "training.neighbours=[2, 2]", "training.nodes_per_step=7")
    assert sampling.steps_per_epoch(sampled, data) == -(-labelled // 7)
    assert len(NeighbourLoader(data.split("train"), 7, [2, 2])) == -(-labelled // 7)
    assert sampling.steps_per_epoch(fitted(data), data) == 1
    assert fitted(data).training.protocol.max_epochs == 200
    few = fitted(data, "training.neighbours=[2, 2]", "training.nodes_per_step=1")
    assert few.training.protocol.max_epochs == 5000 // labelled


@pytest.mark.parametrize(
    ("settings", "preset", "why"),
    [
        (("training.neighbours=[3]",), PRESET, r"has 1 numbers for model\.layers=2: give one for each layer"),
        (("training.neighbours=[3, 3]",), "zinc/san-lspe", r"SAN looks at more .* training\.neighbours=\[\]"),
        (("training.neighbours=[3, 3]", "model.size_norm=true"), PRESET, "GatedGCN with size_norm=True looks at more"),
        (("training.neighbours=[3, 3]", "model.normalize_positions=true"), PRESET, "normalised over whole graphs"),
        (("training.neighbours=[3, 3]",), "zinc/gatedgcn-lspe-posloss", "positional loss is that of whole graphs"),
    ],
)
def test_samples_that_cannot_be_learned_from_are_refused(settings: tuple[str, ...], preset: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        fitted(from_pyg(one_graph(60)), *settings, preset=preset)


def test_targets_of_edges_are_not_sampled() -> None:
    with pytest.raises(ConfigError, match="samples are drawn around nodes, and targets are those of edges"):
        fitted(from_pyg(edges_of_one_graph(60)), "training.neighbours=[3, 3]")


def test_a_loss_that_is_not_a_number_names_the_nodes(tmp_path: Path) -> None:
    graph = one_graph(60)
    graph.y = torch.where(graph.y > 0, graph.x[:, 0], torch.nan)
    settings = {**SETTINGS, "training.protocol.lr": 1e30, "training.protocol.clip": 1e30}
    with pytest.raises(
        TrainingError, match=r"the loss is not a number in epoch \d+, batch \d+: nodes \d+, .* of the data"
    ):
        lspe.train(graph, out=tmp_path / "run", epochs=9, settings=settings)


def test_two_processes_share_the_nodes_of_a_graph(tmp_path: Path) -> None:
    data = from_pyg(one_graph()).with_encoding("rwpe", 4)
    settings = [f"{place}={value}" for place, value in SETTINGS.items()]
    experiment = fitted(data, *settings, "training.protocol.max_epochs=15", "training.protocol.max_steps=null")
    in_two_processes(lambda: fit(experiment, data, tmp_path / "run", device="cpu", devices=2, threads=1))
    run = lspe.Run.open(tmp_path / "run")
    assert run.summary["hardware"]["devices"] == 2
    assert run.summary["reported"]["test"]["accuracy"] > 80
    scores = run.evaluate(data.split("test")).to_dict()
    assert run.summary["reported"]["test"] == pytest.approx(scores, rel=1e-4)
