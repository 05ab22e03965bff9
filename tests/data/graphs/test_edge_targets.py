"""Labels of edges: told by their shape, kept with their edges, divided with both directions together."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lspe.data import DataError, from_pyg, read_graphs, save_graphs
from tests.data.graphs.test_pyg import ring, shaped
from tests.levels import edges_of, edges_of_one_graph, many_graphs


def labels_by_ends(graph: Data) -> dict[tuple[int, int], int]:
    return {(i, j): label for (i, j), label in zip(graph.edge_index.T.tolist(), graph.y.tolist(), strict=True)}


def test_a_row_per_edge_in_every_graph_is_a_target_of_edges() -> None:
    data = from_pyg(shaped((3, (6,)), (4, (8,))))
    assert (data.level, data.task, data.divided) == ("edge", "regression", "graphs")
    assert from_pyg(shaped((3, (6, 2)), (4, (8, 2)))).num_outputs == 2
    one = from_pyg(shaped((5, (10,)))[:1])
    assert (one.level, one.divided) == ("edge", "targets")
    both = [Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3, y=torch.rand(3))] * 3
    with pytest.raises(DataError, match="level='graph' or level='node' or level='edge'"):
        from_pyg(both)
    assert from_pyg(both, level="edge").level == "edge"
    as_many = [*both, Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=torch.rand(2))]
    with pytest.raises(DataError, match=r"as many nodes as edges.* level='node' or level='edge'"):
        from_pyg(as_many)
    with pytest.raises(DataError, match=r"shape \[3\] and the graph has 6 edges: targets of edges have a row per edge"):
        from_pyg([ring(3, y=torch.rand(3))] * 3, level="edge")


def test_labels_stay_with_their_edges_whatever_order_they_are_packed_in() -> None:
    graphs = [edges_of(graph) for graph in many_graphs(6)]
    packed = from_pyg(graphs).graphs
    for number, graph in enumerate(graphs):
        assert labels_by_ends(packed[number]) == labels_by_ends(graph)
    batch = packed.batch([4, 1])
    assert len(batch.y) == batch.num_edges
    assert torch.equal(batch[1].y, packed[1].y)


def test_masks_of_edges_divide_them() -> None:
    graph = edges_of_one_graph(30)
    data = from_pyg(graph)
    assert data.divided == "targets"
    for name in ("train", "val", "test"):
        known = graph.y.clone()
        known[~graph[f"{name}_mask"]] = -1
        expected = labels_by_ends(Data(edge_index=graph.edge_index, y=known))
        assert labels_by_ends(data.split(name)[0]) == expected


def test_both_directions_of_an_edge_are_in_the_same_part() -> None:
    graph = edges_of(many_graphs(1)[0])
    graph.y = graph.edge_index.sum(dim=0).float() + 0.5
    for data in (from_pyg(graph), from_pyg(graph, folds=3).fold(1)):
        part_of = {}
        for name, rows in data.splits.items():
            for row in rows:
                part_of[int(data.graphs.source[row]), int(data.graphs.target[row])] = name
        assert len(part_of) == graph.num_edges
        assert all(part_of[j, i] == part for (i, j), part in part_of.items())
        assert set(part_of.values()) == {"train", "val", "test"}


def test_own_parts_number_the_edges_as_they_are_given() -> None:
    graph = edges_of_one_graph(12)
    for name in ("train", "val", "test"):
        del graph[f"{name}_mask"]
    data = from_pyg(graph, splits={"train": [1, 5], "val": [2], "test": [3]})
    known = torch.full_like(graph.y, -1)
    known[[1, 5]] = graph.y[[1, 5]]
    assert labels_by_ends(data.split("train")[0]) == labels_by_ends(Data(edge_index=graph.edge_index, y=known))


@pytest.mark.parametrize("kind", ["npz", "parquet", "json"])
def test_files_keep_labels_of_edges(kind: str, tmp_path: Path) -> None:
    graphs = [edges_of(graph) for graph in many_graphs(3)]
    save_graphs(tmp_path / f"edges.{kind}", graphs)
    stored = read_graphs(tmp_path / f"edges.{kind}")
    assert stored.level == "edge"
    assert all(torch.equal(one.y, other.y) for one, other in zip(stored.graphs, graphs, strict=True))
    np.savez(
        tmp_path / "both.npz",
        **{"num_nodes": [2], "num_edges": [1], "edge_index": [[0], [1]], "node/y": [1, 2], "edge/y": [1]},
    )
    with pytest.raises(DataError, match="targets of nodes and of edges: leave one"):
        read_graphs(tmp_path / "both.npz")
