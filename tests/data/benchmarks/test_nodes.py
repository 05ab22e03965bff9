"""CLUSTER, PATTERN, PubMed and CiteSeer: what is known of them, and the way from their files."""

import io
import zipfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from lspe.data import DataError, GraphData, load_benchmark
from lspe.data.benchmarks import sbm


def edge_probability(edges: np.ndarray, one: np.ndarray, other: np.ndarray) -> tuple[int, int]:
    """Edges between two sets of nodes (or inside one) in both directions, and how many there could be."""
    inside = one[edges[0]] & other[edges[1]]
    pairs = int(one.sum()) * int(other.sum()) - int((one & other).sum())
    return int(inside.sum()), pairs


def test_cluster_is_as_published() -> None:
    found, possible = np.zeros(2), np.zeros(2)
    sizes = []
    for types, community, edges in islice(sbm.generate_cluster(), 60):
        assert sorted(types[types > 0].tolist()) == [1, 2, 3, 4, 5, 6]
        assert (community[types > 0] == types[types > 0] - 1).all()
        sizes += np.bincount(community, minlength=6).tolist()
        pairs = set(map(tuple, edges.T.tolist()))
        assert len(pairs) == edges.shape[1]
        assert all((j, i) in pairs and i != j for i, j in pairs)
        for number in range(6):
            here = community == number
            for kind, other in enumerate((here, ~here)):
                count, most = edge_probability(edges, here, other)
                found[kind], possible[kind] = found[kind] + count, possible[kind] + most
    assert (min(sizes), max(sizes)) == (5, 34)
    assert found / possible == pytest.approx([0.55, 0.25], abs=0.005)


def test_pattern_is_as_published() -> None:
    found, possible = np.zeros(2), np.zeros(2)
    types_of_others = np.zeros(3)
    patterns = set()
    for types, is_pattern, edges in islice(sbm.generate_pattern(), 150):
        pattern, others = is_pattern == 1, is_pattern == 0
        assert pattern.sum() == 20
        assert 25 <= others.sum() <= 5 * 34
        for kind, other in enumerate((pattern, others)):
            count, most = edge_probability(edges, pattern, other)
            found[kind], possible[kind] = found[kind] + count, possible[kind] + most
        types_of_others += np.bincount(types[others], minlength=3)
        inner = np.bincount(edges[1][pattern[edges[0]] & pattern[edges[1]]], minlength=len(types))[pattern]
        patterns.add((tuple(sorted(inner.tolist())), tuple(np.bincount(types[pattern], minlength=3).tolist())))
    assert found / possible == pytest.approx([0.5, 0.5], abs=0.01)
    assert types_of_others / types_of_others.sum() == pytest.approx([1 / 3] * 3, abs=0.02)
    assert 60 < len(patterns) <= 100  # of 100 patterns, 150 draws see about 78


def test_a_generated_set_is_the_same_every_time(tmp_path: Path) -> None:
    for model in (sbm.CLUSTER, sbm.PATTERN):
        for name in ("a", "b"):
            sbm.build(tmp_path / name, model, sizes=(6, 2, 2))
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        data = GraphData.open(tmp_path / "a")
        assert (data.level, data.divided, data.task, len(data.graphs)) == ("node", "graphs", "multiclass", 10)
        assert {part: len(numbers) for part, numbers in data.splits.items()} == {"train": 6, "val": 2, "test": 2}
        assert len(data.split("val").y) == data.split("val").num_nodes.sum()
        assert data.graphs[0].x.max() < data.features.node_types


def test_pygs_archive_is_read_where_it_is_given(tmp_path: Path) -> None:
    graphs = [
        {"x": torch.eye(7)[[0, 2, 1]], "edge_index": torch.tensor([[0, 1], [1, 0]]), "y": torch.tensor([1, 1, 0])}
        for _ in range(3)
    ]
    content = io.BytesIO()
    torch.save([graphs[:1], graphs[1:2], graphs[2:]], content)
    archive = tmp_path / sbm.archive_of(sbm.CLUSTER)
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("CLUSTER.pt", content.getvalue())
    sbm.build(tmp_path / "packed", sbm.CLUSTER, archive, sizes=(1, 1, 1))
    data = GraphData.open(tmp_path / "packed")
    assert data.graphs[1].x.tolist() == [0, 2, 1]
    assert data.graphs[1].y.tolist() == [1, 1, 0]
    with pytest.raises(DataError, match=r"holds parts of \(1, 1, 1\) graphs; CLUSTER has \(10000, 1000, 1000\)"):
        load_benchmark("cluster", tmp_path)


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "parts", "unlabelled"),
    [("pubmed", 19_717, 88_648, (60, 500, 1000), 0), ("citeseer", 3_327, 9_104, (120, 500, 1000), 15)],
)
def test_papers(shared_data: Path, name: str, nodes: int, edges: int, parts: tuple[int, ...], unlabelled: int) -> None:
    data = load_benchmark(name, shared_data)
    assert (int(data.graphs.num_nodes[0]), int(data.graphs.num_edges[0])) == (nodes, edges)
    assert tuple(map(len, data.splits.values())) == parts
    assert (data.graphs.y == -1).sum() == unlabelled
    assert (data.split("train").y >= 0).sum() == parts[0]
    assert np.bincount(data.graphs.y[data.splits["train"]]).tolist() == [20] * data.num_outputs
    length = np.linalg.norm(data.graphs.node["x"], axis=1)
    assert np.isclose(length, 1, atol=1e-5).sum() + (length == 0).sum() == nodes
    graph = data.graphs[0]
    same = graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]
    assert same.double().mean() > 0.7  # papers cite their own field


def test_papers_that_are_not_there_say_where_to_put_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"planetoid_pubmed\.npz is not in .*: put it there"):
        load_benchmark("pubmed", tmp_path)
