"""The estimate for huge graphs: unbiased, and its error bars mean what they say."""

import networkx as nx
import pytest
import torch
from torch_geometric.utils import from_networkx

from lspe.encodings import estimate_random_walk_encoding, random_walk_encoding
from tests.graphs import cubic_8


def coverage(edge_index: torch.Tensor, n: int, k: int, weight: torch.Tensor | None = None, probes: int = 256) -> float:
    exact = random_walk_encoding(edge_index, n, k, edge_weight=weight)
    value, error = estimate_random_walk_encoding(edge_index, n, k, edge_weight=weight, probes=probes)
    assert torch.isfinite(error).all()
    torch.testing.assert_close(value[:, :2], exact[:, :2])
    assert not error[:, :2].any()
    estimated = error[:, 2:] > 0
    assert estimated.float().mean() > 0.9
    return ((value - exact)[:, 2:].abs() <= error[:, 2:])[estimated].float().mean().item()


def test_bars_cover_the_truth_19_times_in_20() -> None:
    edge_index = from_networkx(nx.random_regular_graph(10, 1500, seed=1)).edge_index
    assert 0.93 <= coverage(edge_index, 1500, 16) <= 0.97


def test_bars_cover_on_a_graph_with_uneven_degrees() -> None:
    edge_index = from_networkx(nx.barabasi_albert_graph(1500, 4, seed=1)).edge_index
    assert 0.93 <= coverage(edge_index, 1500, 12) <= 0.97


def test_late_steps_do_not_err_together() -> None:
    """A small expander has mixed after a few steps; two parts have two limits."""
    one = nx.random_regular_graph(10, 300, seed=4)
    edge_index = from_networkx(nx.disjoint_union(one, nx.random_regular_graph(8, 200, seed=5))).edge_index
    exact = random_walk_encoding(edge_index, 500, 24)
    late = slice(16, 24)
    covered = []
    for seed in range(8):
        value, error = estimate_random_walk_encoding(edge_index, 500, 24, seed=seed)
        covered.append(((value - exact)[:, late].abs() <= error[:, late]).float().mean())
        assert error[:, late].mean() < 0.1 * exact[:, late].mean()
    assert 0.93 <= torch.stack(covered).mean() <= 0.97


def test_late_steps_of_bipartite_parts_do_not_err_together() -> None:
    """Walks on a bipartite part come back after even steps only: one part of each kind."""
    sides = nx.random_regular_graph(8, 150, seed=6)
    bipartite = nx.Graph([(i, j + 150) for i, j in sides.edges] + [(j, i + 150) for i, j in sides.edges])
    edge_index = from_networkx(nx.disjoint_union(bipartite, nx.random_regular_graph(8, 200, seed=5))).edge_index
    exact = random_walk_encoding(edge_index, 500, 24)
    covered = []
    for seed in range(8):
        value, error = estimate_random_walk_encoding(edge_index, 500, 24, seed=seed)
        covered.append(((value - exact)[:, 16:].abs() <= error[:, 16:] + 1e-7).float().mean())
        assert (value - exact)[:300, 16:].abs().max() < 0.005 * exact[:300, 23].mean()
    assert torch.stack(covered).mean() >= 0.93


def test_directed_and_weighted() -> None:
    edge_index = from_networkx(nx.gnp_random_graph(800, 0.01, seed=2, directed=True)).edge_index
    weight = torch.rand(edge_index.size(1), generator=torch.Generator().manual_seed(0)) + 0.1
    assert 0.93 <= coverage(edge_index, 800, 8, weight) <= 0.97


def test_error_falls_with_the_root_of_the_probes() -> None:
    edge_index = from_networkx(nx.random_regular_graph(6, 500, seed=3)).edge_index
    few = estimate_random_walk_encoding(edge_index, 500, 8, probes=64).error[:, 2:].mean()
    many = estimate_random_walk_encoding(edge_index, 500, 8, probes=1024).error[:, 2:].mean()
    assert many / few == pytest.approx(0.25, rel=0.1)


def test_small_numbers_and_bad_arguments() -> None:
    data = cubic_8()
    assert estimate_random_walk_encoding(data.edge_index, 8, 1, probes=2).value.shape == (8, 1)
    edgeless = estimate_random_walk_encoding(data.edge_index[:, :0], 3, 5)
    assert not edgeless.value.any()
    assert not edgeless.error.any()
    same = [estimate_random_walk_encoding(data.edge_index, 8, 6, seed=4).value for _ in range(2)]
    assert torch.equal(*same)
    with pytest.raises(ValueError, match="at least 2 probes"):
        estimate_random_walk_encoding(data.edge_index, 8, 4, probes=1)
