"""Targets of nodes and edges: many graphs, and one graph with masks, through all that a run is good for."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import lspe
from lspe.config import ConfigError
from lspe.data import from_pyg
from lspe.errors import UserError
from lspe.experiment import read_experiment
from lspe.experiment.overriding import override
from lspe.experiment.task import Task
from lspe.predict.splits import predict_split
from lspe.training.evaluation import graph_of_target, loss_sums
from lspe.training.objective import Objective
from lspe.training.seeds_and_folds import evaluate_runs
from tests.levels import SMALL, edges_of, edges_of_one_graph, many_graphs, one_graph
from tests.small import without_times

SETTINGS = {
    **SMALL,
    "training.batch_size": 4,
    "training.protocol.lr": 0.01,
    "model.dropout": 0.0,
    "model.head_dropout": 0.0,
}
SOURCES: dict[str, Callable[[], Data | list[Data]]] = {
    "nodes": many_graphs,
    "nodes of one": one_graph,
    "edges": lambda: [edges_of(graph) for graph in many_graphs()],
    "edges of one": edges_of_one_graph,
}


@pytest.fixture(scope="module", params=SOURCES)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[lspe.Run, list[Data]]:
    source = SOURCES[request.param]()
    epochs = 15 if isinstance(source, list) else 60
    run = lspe.train(source, out=tmp_path_factory.mktemp(request.param) / "run", epochs=epochs, settings=SETTINGS)
    return run, source if isinstance(source, list) else [source]


def test_targets_are_learned(trained: tuple[lspe.Run, list[Data]]) -> None:
    run, graphs = trained
    summary = run.summary
    level = "node" if len(graphs[0].y) == graphs[0].num_nodes else "edge"
    assert (summary["level"], summary["task"]) == (level, "multiclass")
    assert summary["reported"]["test"]["accuracy"] > 85 > 75 > summary["constant"]["test"]["accuracy"]
    config = run.config
    assert (config.task.level, config.model.readout) == (level, {"node": "none", "edge": "edge"}[level])


def test_parts_are_those_of_the_data(trained: tuple[lspe.Run, list[Data]]) -> None:
    run, graphs = trained
    if len(graphs) == 1:
        known = graphs[0].y >= 0
        expected = {part: int((graphs[0][f"{part}_mask"] & known).sum()) for part in ("train", "val", "test")}
        assert run.summary["graphs"] == {"train": 1, "val": 1, "test": 1}
    else:
        data = from_pyg(graphs)
        expected = {part: sum(int((graphs[i].y >= 0).sum()) for i in numbers) for part, numbers in data.splits.items()}
    assert run.summary["targets"] == expected


def test_evaluating_gives_the_scores_of_training(trained: tuple[lspe.Run, list[Data]]) -> None:
    run, _ = trained
    for split in ("val", "test"):
        [scores] = evaluate_runs(run.path, split).values()
        assert scores == pytest.approx(run.summary["reported"][split])


def place_of(row: dict[str, str], graph: Data) -> int:
    """Where the node or edge of a row of predictions stands in its graph."""
    if "node" in row:
        return int(row["node"])
    ends = torch.tensor([[int(row["source"])], [int(row["target"])]])
    [place] = (graph.edge_index == ends).all(dim=0).nonzero().flatten().tolist()
    return place


def test_predictions_are_those_of_the_targets_in_their_order(trained: tuple[lspe.Run, list[Data]]) -> None:
    """The table of the run, and what predicting the graphs anew gives, are the same numbers."""
    run, graphs = trained
    predicted = lspe.load(run.path).predict(graphs)
    assert [one.shape for one in predicted] == [(len(graph.y), 3) for graph in graphs]
    right = np.concatenate([one.argmax(axis=1) for one in predicted]) == np.concatenate([graph.y for graph in graphs])
    assert right.mean() > 0.75  # as it can only be in the right order
    alone = lspe.load(run.path).predict(graphs[0])
    np.testing.assert_allclose(alone, predicted[0], atol=1e-5)
    with (run.path / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == run.summary["targets"]["test"]
    for row in rows[:50]:
        graph = int(row["graph"])
        place = place_of(row, graphs[graph])
        assert row["y"] == str(int(graphs[graph].y[place]))
        given = [float(row[f"y_probability_{label}"]) for label in range(3)]
        np.testing.assert_allclose(given, predicted[graph][place], atol=1e-4)
    right = [max(range(3), key=lambda c: float(row[f"y_probability_{c}"])) == int(row["y"]) for row in rows]
    assert 100 * np.mean(right) == pytest.approx(run.summary["reported"]["test"]["accuracy"])


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_goes_on_as_if_it_had_never_stopped(source: str, tmp_path: Path) -> None:
    graphs = SOURCES[source]()
    settings = {**SMALL, "model.dropout": 0.2}
    preset = {"preset": "zinc/gatedgcn-lspe", "settings": settings}  # whose protocol may go on further
    whole = lspe.train(graphs, out=tmp_path / "whole", epochs=4, **preset)
    lspe.train(graphs, out=tmp_path / "parts", epochs=2, **preset)
    parts = lspe.train(tmp_path / "parts", epochs=4, resume=True)
    assert without_times(parts.history) == without_times(whole.history)
    assert parts.summary["reported"] == whole.summary["reported"]


def test_hidden_labels_have_no_part_in_training(tmp_path: Path) -> None:
    """Other labels of validation and test nodes change the scores and nothing else."""
    graph, other = one_graph(60), one_graph(60)
    other.y[~other.train_mask & (other.y > 0)] = 1
    runs = [
        lspe.train(one, out=tmp_path / name, epochs=3, settings={**SMALL, "training.protocol.report": "last"})
        for name, one in (("a", graph), ("b", other))
    ]
    first, second = (lspe.load(run.path).predict(graph) for run in runs)
    np.testing.assert_array_equal(first, second)
    assert runs[0].summary["reported"]["test"] != runs[1].summary["reported"]["test"]


def test_regression_and_labels_of_nodes(tmp_path: Path) -> None:
    graphs = many_graphs(20)
    for graph in graphs:
        graph.y = torch.where(torch.rand(graph.num_nodes, 1) < 0.2, torch.nan, 100 + 30 * graph.x[:, :1])
    run = lspe.train(graphs, out=tmp_path / "numbers", epochs=10, settings=SETTINGS)
    assert run.summary["reported"]["test"]["mae"] < 0.5 * run.summary["constant"]["test"]["mae"]
    assert lspe.load(run.path).predict(graphs[1]).shape == (graphs[1].num_nodes,)
    for graph in graphs:
        graph.y = (graph.x > 0).float()
    run = lspe.train(graphs, out=tmp_path / "labels", epochs=10, settings=SETTINGS)
    assert run.summary["reported"]["test"]["roc_auc"] > 0.8
    test = predict_split(run, from_pyg(graphs).with_encoding("rwpe", 4))
    assert (test.level, test.predicted.shape[1], [*test.names]) == ("node", 2, ["graph", "node"])


def test_folds_of_masks_are_trained_one_by_one(tmp_path: Path) -> None:
    graph = one_graph(60)
    for name in ("train", "val", "test"):
        graph[f"{name}_mask"] = torch.stack([graph[f"{name}_mask"], graph[f"{name}_mask"].roll(1)], dim=1)
    run = lspe.train(graph, out=tmp_path / "run", epochs=2, settings=SMALL)
    assert run.summary["parts"] == ["fold0", "fold1"]
    assert len(lspe.load(run.path).members) == 2
    mean, sd = lspe.load(run.path).predict(graph, return_std=True)
    assert mean.shape == sd.shape == (60, 3)


def test_what_does_not_fit_together_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gives an output per graph, but targets are those of nodes: use 'none'"):
        override(read_experiment("cluster/gatedgcn"), ["model.readout=mean"])
    run = lspe.train(many_graphs(20), out=tmp_path / "run", epochs=1, settings=SMALL)
    with pytest.raises(UserError, match=r"a table of molecules takes a prediction per graph, and .* predicts nodes"):
        lspe.load(run.path).predict_table("any.csv", "out.csv")
    with pytest.raises(ConfigError, match="gives an output per graph, but targets are those of edges: use 'edge'"):
        override(read_experiment("nci/gatedgcn"), ["task.level=edge"])


@pytest.mark.parametrize("level", ["graph", "node", "edge"])
def test_every_output_is_of_a_graph(level: str) -> None:
    graphs = many_graphs(4)
    counts = {
        "graph": [1] * 4,
        "node": [graph.num_nodes for graph in graphs],
        "edge": [graph.num_edges for graph in graphs],
    }[level]
    batch = from_pyg(graphs).graphs.batch()
    assert graph_of_target(batch, level).tolist() == np.repeat(np.arange(4), counts).tolist()


def test_a_weight_of_a_graph_is_that_of_its_nodes_and_edges() -> None:
    for level, make in (("node", lambda graph: graph), ("edge", edges_of)):
        graphs = [make(graph) for graph in many_graphs(4)]
        for number, graph in enumerate(graphs):
            graph.weight = torch.tensor([float(number)])
        batch = from_pyg(graphs).graphs.batch()
        objective = Objective(Task(level=level, kind="multiclass", outputs=3, metric="accuracy"))
        output = torch.randn(len(batch.y), 3)
        weight = torch.repeat_interleave(torch.arange(4.0), torch.tensor([len(graph.y) for graph in graphs]))
        expected = objective.loss(output, batch.y, weight)
        torch.testing.assert_close(loss_sums(output, None, batch, objective, None)[:2], torch.stack(expected))


@pytest.mark.parametrize("preset", ["zinc/pna-lspe", "zinc/san-lspe", "zinc/gatedgcn-lappe"])
def test_every_kind_of_network_reads_edges(preset: str, tmp_path: Path) -> None:
    graphs = [edges_of(graph) for graph in many_graphs(12)]
    settings = {"model.layers": 1, "model.k": 4, "training.batch_size": 4}
    run = lspe.train(graphs, preset=preset, out=tmp_path / "run", epochs=1, settings=settings)
    assert lspe.load(run.path).predict(graphs[0]).shape == (graphs[0].num_edges, 3)


def test_one_graph_is_not_for_several_processes(tmp_path: Path) -> None:
    """The second would have no part of the batch and wait for ever; what was begun is not in the way afterwards."""
    with pytest.raises(UserError, match="has 1 training graph, too few for 2 processes"):
        lspe.train(one_graph(), out=tmp_path / "run", epochs=1, settings=SETTINGS, devices=2)
    assert lspe.train(one_graph(), out=tmp_path / "run", epochs=1, settings=SETTINGS).summary["epochs"] == 1
