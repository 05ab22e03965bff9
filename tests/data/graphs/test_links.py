"""Graphs whose edges are to be learned: how they are divided, what is seen, what is refused."""

import itertools
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from lspe.data import DataError, from_pyg, read_graphs, save_graphs
from lspe.data.statistics import in_a_sentence, statistics
from lspe.encodings import encode
from tests.data.packed.test_links import asked, seen
from tests.levels import communities, edges_of_one_graph, many_graphs


@pytest.fixture(scope="module")
def graphs() -> list[Data]:
    return [communities(10 + 4 * number, seed=number) for number in range(8)]


def test_hidden_edges_are_seen_in_no_part(graphs: list[Data]) -> None:
    data = from_pyg(graphs, level="link", fractions=(0.5, 0.2, 0.3))
    everything = {(number, i, j) for number, graph in enumerate(graphs) for i, j in graph.edge_index.T.tolist()}
    undirected = {(number, min(i, j), max(i, j)) for number, i, j in everything}
    parts = {name: asked(data.split(name), 1) for name in ("train", "val", "test")}
    assert set().union(*parts.values()) == undirected
    assert sum(map(len, parts.values())) == len(undirected), "each is in one part"
    assert len(parts["val"]) == int(0.2 * len(undirected))
    visible = {pair for number, i, j in parts["train"] for pair in ((number, i, j), (number, j, i))}
    for name in parts:
        assert seen(data.split(name)) == visible
        assert not asked(data.split(name), 0) & everything, "what is said to be unjoined is"
    unjoined = [asked(data.split(name), 0) for name in ("val", "test")]
    assert not unjoined[0] & unjoined[1]
    assert [len(one) for one in unjoined] == [len(parts["val"]), len(parts["test"])]
    with_encoding = data.with_encoding("rwpe", 5)
    train = with_encoding.split("train").batch()
    expected = encode("rwpe", train.edge_index, train.num_nodes, 5, batch=train.batch)
    torch.testing.assert_close(with_encoding.split("test").batch().random_walk_pe, expected)


def test_the_seed_decides(graphs: list[Data]) -> None:
    one, same, other = (from_pyg(graphs, level="link", seed=seed) for seed in (0, 0, 1))
    assert asked(one.split("test"), 1) == asked(same.split("test"), 1) != asked(other.split("test"), 1)
    assert asked(one.split("test"), 0) == asked(same.split("test"), 0) != asked(other.split("test"), 0)


def test_masks_say_which_edges_are_hidden() -> None:
    graph = edges_of_one_graph(60)
    data = from_pyg(graph, level="link")
    for part in ("train", "val", "test"):
        expected = graph.edge_index[:, graph[f"{part}_mask"]]
        assert asked(data.split(part), 1) == {(0, i, j) for i, j in expected.T.tolist() if i < j}
    assert "y" not in data.graphs.edge, "targets of another level are left out"
    graph.val_mask[graph.train_mask.nonzero()[0]] = True
    graph.train_mask[graph.train_mask.nonzero()[0]] = False
    with pytest.raises(DataError, match=r"the two directions of edge .* are in different parts"):
        from_pyg(graph, level="link")


def test_features_stay_with_their_edges() -> None:
    graphs = many_graphs(10)
    for graph in graphs:
        graph.edge_attr = graph.edge_index.sum(dim=0).float()[:, None]
    seen_edges = from_pyg(graphs, level="link").graphs
    for graph in seen_edges:
        assert torch.equal(graph.edge_attr[:, 0], graph.edge_index.sum(dim=0).float())
        assert graph.edge_index.size(1) < 40
    assert [graph.num_nodes for graph in seen_edges] == [graph.num_nodes for graph in graphs]
    assert torch.equal(seen_edges[3].x, graphs[3].x)


def test_what_they_are_in_words(graphs: list[Data]) -> None:
    data = from_pyg(graphs, level="link")
    sentence = in_a_sentence(data)
    count = sum(graph.num_edges for graph in graphs) // 2
    hidden = int(0.1 * count)
    assert f"{count - 2 * hidden:,} edges are seen, {hidden:,} val and {hidden:,} test edges are hidden" in sentence
    assert statistics(data)["positives"] == count


@pytest.mark.parametrize("suffix", ["npz", "json", "parquet"])
def test_files_keep_them(suffix: str, graphs: list[Data], tmp_path: Path) -> None:
    save_graphs(tmp_path / f"links.{suffix}", graphs, level="link")
    stored = read_graphs(tmp_path / f"links.{suffix}")
    assert stored.level == (None if suffix == "npz" else "link")
    ours, theirs = from_pyg(stored.graphs, level="link"), from_pyg(graphs, level="link")
    assert torch.equal(ours.split("val").batch().edge_label_index, theirs.split("val").batch().edge_label_index)


def changed(edges: list[list[int]], nodes: int = 20) -> Data:
    ring = [[i, (i + 1) % nodes] for i in range(nodes)]
    both = ring + [[j, i] for i, j in ring] + edges
    return Data(edge_index=torch.tensor(both).T, num_nodes=nodes)


REFUSED = {
    r"graph 0: the edge 3 → 7 goes one way only: .*to_undirected": changed([[3, 7]]),
    r"graph 0: node 4 is joined to itself.*remove_self_loops": changed([[4, 4]]),
    r"graph 0: the edge 0 → 1 is listed twice.*coalesce": changed([[0, 1], [1, 0]]),
    r"graph 0 has an edge 3 → 20 but only 20 nodes": changed([[3, 20], [20, 3]]),
    r"there are 9 undirected edges, too few to hide some": changed([], nodes=9),
    r"all pairs of nodes are joined": Data(
        edge_index=torch.tensor([*itertools.permutations(range(8), 2)]).T, num_nodes=8
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_learned_is_refused_in_words(message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_pyg(REFUSED[message], level="link")


def test_options_that_do_not_fit_are_refused_in_words(graphs: list[Data]) -> None:
    with pytest.raises(DataError, match="edges are divided and not graphs"):
        from_pyg(graphs, level="link", folds=4)
    with pytest.raises(DataError, match="binary task, not regression"):
        from_pyg(graphs, level="link", task="regression")
    with pytest.raises(DataError, match=r"level='link' \(--level link\)"):
        from_pyg(graphs)
    folds = communities()
    folds.train_mask = (folds.edge_index.sum(dim=0) % 2 == 0)[:, None].repeat(1, 2)
    with pytest.raises(DataError, match="the masks have 2 columns"):
        from_pyg(folds, level="link")
    del folds.train_mask
    folds.val_mask = torch.ones(folds.num_nodes, dtype=torch.bool)
    with pytest.raises(DataError, match="val_mask has 60 rows and the graph"):
        from_pyg(folds, level="link")
