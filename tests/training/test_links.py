"""Links through all that a run is good for: of one graph and of many."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import lspe
from lspe.config import ConfigError
from lspe.data import from_pyg
from lspe.errors import UserError
from lspe.experiment import build_network, override, read_experiment
from lspe.training.seeds_and_folds import evaluate_runs
from tests.levels import communities
from tests.small import without_times

SMALL = {"model.layers": 2, "model.hidden_dim": 16, "model.k": 16}
SOURCES = {
    "one graph": lambda: communities(80),
    "many graphs": lambda: [communities(24 + number, groups=2, seed=number) for number in range(12)],
}


@pytest.fixture(scope="module", params=SOURCES)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[lspe.Run, list[Data]]:
    source = SOURCES[request.param]()
    out = tmp_path_factory.mktemp("links") / "run"
    run = lspe.train(source, level="link", out=out, epochs=60, settings=SMALL)
    return run, source if isinstance(source, list) else [source]


def asking(graphs: list[Data], pairs: list[torch.Tensor]) -> list[Data]:
    return [
        Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes, edge_label_index=one)
        for graph, one in zip(graphs, pairs, strict=True)
    ]


def test_links_are_learned(trained: tuple[lspe.Run, list[Data]]) -> None:
    run, _ = trained
    summary = run.summary
    assert (summary["level"], summary["task"], summary["metric"]) == ("link", "binary", "roc_auc")
    assert summary["reported"]["test"]["roc_auc"] > 0.75 > 0.5 == summary["constant"]["test"]["roc_auc"]
    assert run.config.name == "own/links-gatedgcn-lspe"
    assert (run.path / "roc.png").exists()
    assert (run.path / "curves.png").exists()


def test_evaluating_gives_the_scores_of_training(trained: tuple[lspe.Run, list[Data]]) -> None:
    run, _ = trained
    for split in ("train", "val", "test"):
        [scores] = evaluate_runs(run.path, split).values()
        assert scores == pytest.approx(run.summary["reported"][split])


def test_the_table_of_the_run_holds_the_hidden_pairs(trained: tuple[lspe.Run, list[Data]]) -> None:
    run, graphs = trained
    with (run.path / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["graph", "source", "target", "joined", "joined_probability"]
    assert len(rows) == run.summary["targets"]["test"]
    edges = {(number, i, j) for number, graph in enumerate(graphs) for i, j in graph.edge_index.T.tolist()}
    for row in rows:
        assert ((int(row["graph"]), int(row["source"]), int(row["target"])) in edges) == (float(row["joined"]) == 1)
    # of the graphs as they were seen in training, predicting gives the same numbers
    seen = [
        Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in from_pyg(graphs, level="link").graphs
    ]
    pairs = [
        torch.tensor([[int(row["source"]), int(row["target"])] for row in rows if int(row["graph"]) == number])
        .reshape(-1, 2)
        .T
        for number in range(len(graphs))
    ]
    predicted = np.concatenate(lspe.load(run.path).predict(asking(seen, pairs)))
    np.testing.assert_allclose([float(row["joined_probability"]) for row in rows], predicted, atol=1e-5)


def test_a_pair_has_no_direction_and_pairs_come_in_their_order(trained: tuple[lspe.Run, list[Data]]) -> None:
    run, graphs = trained
    model = lspe.load(run.path)
    pairs = torch.randint(0, 24, (2, 50), generator=torch.Generator().manual_seed(0))
    pairs = pairs[:, pairs[0] != pairs[1]]
    forwards, backwards = (model.predict(asking(graphs[:1], [one])[0]) for one in (pairs, pairs.flip(0)))
    assert forwards.shape == (pairs.size(1),)
    np.testing.assert_allclose(forwards, backwards, atol=1e-6)
    order = torch.randperm(pairs.size(1))
    np.testing.assert_allclose(model.predict(asking(graphs[:1], [pairs[:, order]])[0]), forwards[order], atol=1e-6)


def test_the_likeliest_links_are_the_best_of_all_pairs(
    trained: tuple[lspe.Run, list[Data]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, graphs = trained
    model = lspe.load(run.path)
    graph = graphs[0]
    monkeypatch.setattr("lspe.predict.links._AT_ONCE", 500)  # several blocks
    found, likely = model.likeliest_links(graph, top=20)
    edges = {tuple(pair) for pair in graph.edge_index.T.tolist()}
    rest = torch.tensor(
        [[i, j] for i in range(graph.num_nodes) for j in range(i + 1, graph.num_nodes) if (i, j) not in edges]
    ).T
    everything = model.predict(asking([graph], [rest])[0])
    best = np.argsort(-everything, kind="stable")[:20]
    np.testing.assert_allclose(likely, everything[best], atol=1e-6)
    assert (np.diff(likely) <= 0).all()
    assert not {tuple(pair) for pair in found.T.tolist()} & edges
    monkeypatch.setattr("lspe.predict.links.MOST_NODES", 10)
    with pytest.raises(UserError, match="too many to look at"):
        model.likeliest_links(graph)


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_goes_on_as_if_it_had_never_stopped(source: str, tmp_path: Path) -> None:
    graphs = SOURCES[source]()
    options = {"level": "link", "settings": {**SMALL, "model.dropout": 0.2}, "protocol": "paper"}
    whole = lspe.train(graphs, out=tmp_path / "whole", epochs=4, **options)
    lspe.train(graphs, out=tmp_path / "parts", epochs=2, **options)
    parts = lspe.train(tmp_path / "parts", epochs=4, resume=True)
    assert without_times(parts.history) == without_times(whole.history)
    assert parts.summary["reported"] == whole.summary["reported"]


def test_hidden_edges_have_no_part_in_training(tmp_path: Path) -> None:
    """Two graphs that differ in hidden edges only give the same weights: by messages, encodings or unjoined pairs."""
    graph = communities(40)
    low, high = graph.edge_index.sort(dim=0).values
    part = (low * 7 + high) % 5
    graph.train_mask, graph.val_mask, graph.test_mask = part < 3, part == 3, part == 4
    other = graph.clone()
    moved = other.edge_index[:, other.test_mask]
    edges = {tuple(pair) for pair in graph.edge_index.T.tolist()}
    free = [(i, j) for i in range(40) for j in range(i + 1, 40) if (i, j) not in edges][: moved.size(1) // 2]
    both = torch.tensor(free + [(j, i) for i, j in free]).T
    other.edge_index = torch.cat([graph.edge_index[:, ~graph.test_mask], both], dim=1)
    for name in ("train", "val", "test"):
        mask = graph[f"{name}_mask"]
        other[f"{name}_mask"] = torch.cat([mask[~graph.test_mask], mask[graph.test_mask]])
    settings = {**SMALL, "training.protocol.report": "last"}
    runs = [
        lspe.train(one, level="link", out=tmp_path / name, epochs=3, settings=settings)
        for name, one in (("one", graph), ("other", other))
    ]
    weights = [run.checkpoint("last")["network"] for run in runs]
    for name, tensor in weights[0].items():
        assert torch.equal(tensor, weights[1][name]), name
    assert [row["train_loss"] for row in runs[0].history] == [row["train_loss"] for row in runs[1].history]
    assert runs[0].summary["reported"]["test"] != runs[1].summary["reported"]["test"]


def test_without_hiding_more_is_asked(tmp_path: Path) -> None:
    run = lspe.train(
        communities(40), level="link", out=tmp_path / "run", epochs=2, settings={**SMALL, "training.hidden_share": 0}
    )
    assert run.config.training.hidden_share == 0
    with pytest.raises(ConfigError, match=r"training\.hidden_share"):
        override(run.config, ["training.hidden_share=1"])


def test_what_does_not_fit_is_said(trained: tuple[lspe.Run, list[Data]]) -> None:
    run, graphs = trained
    model = lspe.load(run.path)
    with pytest.raises(UserError, match=r"graph 0 does not say which pairs .* edge_label_index \[2, P\]"):
        model.predict(graphs[0])
    with pytest.raises(UserError, match="graph 0, pair 1: 3 – 500, but the graph has"):
        model.predict(asking(graphs[:1], [torch.tensor([[0, 3], [1, 500]])])[0])
    with pytest.raises(UserError, match="graph 0, pair 0: node 2 and itself"):
        model.predict(asking(graphs[:1], [torch.tensor([[2], [2]])])[0])
    with pytest.raises(UserError, match=r"edge_label_index has shape \[3, 1\]"):
        model.predict(asking(graphs[:1], [torch.tensor([[2], [2], [1]])])[0])
    with pytest.raises(UserError, match="predicts links, and SMILES"):
        model.predict("CCO")
    with pytest.raises(ConfigError, match="gives an output per node, but targets are those of links: use 'link'"):
        override(run.config, ["model.readout=none"])
    with pytest.raises(ConfigError, match=r"no task.metric 'mrr'"):
        lspe.train("nci/gatedgcn-lspe", settings={"task.metric": "mrr"}, out=run.path.parent / "none")
    network = build_network(read_experiment("own/links-gatedgcn-lspe")).eval()
    with pytest.raises(ValueError, match="which pairs of nodes are asked for"):
        network(
            Data(
                edge_index=graphs[0].edge_index,
                num_nodes=graphs[0].num_nodes,
                walk_sketch_pe=torch.zeros(graphs[0].num_nodes, 64),
            )
        )
