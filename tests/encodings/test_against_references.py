"""The encodings against networkx, scipy, sums written out, and closed forms."""

import itertools
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lspe.encodings import KINDS, all_pairs, encode, encode_pairs, find_kind
from tests.encodings import references
from tests.encodings.references import Array
from tests.graphs import from_networkx

K = 6


def nodes_of(kind: str, data: Data, k: int = K) -> Array:
    return encode(
        kind, data.edge_index, data.num_nodes, k, edge_weight=data.edge_weight, dtype=torch.float64
    ).numpy()  # fmt: skip


def pairs_of(kind: str, data: Data, k: int = K) -> Array:
    """``[n, n, k]``."""
    values = encode_pairs(
        kind, data.edge_index, data.num_nodes, k,
        pairs=all_pairs(data.num_nodes), edge_weight=data.edge_weight, dtype=torch.float64,
    )  # fmt: skip
    return values.reshape(data.num_nodes, data.num_nodes, k).numpy()


def values_of(kind: str, data: Data, k: int = K) -> Array:
    return (nodes_of if find_kind(kind).level == "node" else pairs_of)(kind, data, find_kind(kind).width or k)


def _diagonal(pairs: Array) -> Array:
    return np.einsum("iik->ik", pairs)


def _nearest(data: Data, k: int) -> Array:
    rows = np.zeros((data.num_nodes, k))
    graph = references.undirected(data)
    for i, row in enumerate(references.resistance(data)):
        ascending = sorted(row[j] for j in nx.node_connected_component(graph, i) if j != i)[:k]
        rows[i, : len(ascending)] = ascending
    return rows


def _unary(data: Data, k: int) -> Array:
    rows = np.zeros((data.num_nodes, k))
    for node, degree in references.directed(data).out_degree(weight="weight"):
        for column in range(k):
            rows[node, column] = min(degree, 1.0)
            degree = max(degree - 1.0, 0.0)
    return rows


REFERENCES: dict[str, Callable[[Data, int], Array]] = {
    "rwpe": lambda data, k: _diagonal(references.random_walks(data, k)),
    "heat": lambda data, k: _diagonal(references.heat(data, k)),
    "ppr": lambda data, k: _diagonal(references.pagerank(data, k)),
    "resistance": _nearest,
    "degree": _unary,
    "rrwp": references.random_walks,
    "heat-pairs": references.heat,
    "ppr-pairs": references.pagerank,
    "resistance-pairs": lambda data, _: references.resistance(data)[:, :, None],
}


def test_every_kind_has_a_reference() -> None:
    assert {*REFERENCES, "lappe"} == {*KINDS}  # that of eigenvectors is in test_laplacian.py


@pytest.mark.parametrize("kind", REFERENCES)
def test_two_hundred_graphs_of_every_sort(kind: str) -> None:
    sorts = set()
    for data in references.two_hundred_graphs():
        np.testing.assert_allclose(values_of(kind, data), REFERENCES[kind](data, K), rtol=0, atol=1e-11)
        graph = references.directed(data)
        sorts |= {name for name, holds in {
            "directed": not nx.is_empty(graph) and nx.overall_reciprocity(graph) < 1,
            "isolated node": any(nx.isolates(graph)),
            "several parts": nx.number_weakly_connected_components(graph) > 1,
            "self loop": nx.number_of_selfloops(graph) > 0,
            "no edge": nx.is_empty(graph),
            "one node": len(graph) == 1,
            "fewer nodes than columns": len(graph) < K,
            "dead end": any(graph.in_degree(node) and not graph.out_degree(node) for node in graph),
        }.items() if holds}  # fmt: skip
    assert len(sorts) == 8


def test_pagerank_of_networkx() -> None:
    for data in itertools.islice(references.two_hundred_graphs(), 30):
        for m in (1, 4):
            expected = references.pagerank_of_networkx(data, m)
            np.testing.assert_allclose(pairs_of("ppr-pairs", data, m)[:, :, -1], expected, rtol=0, atol=1e-11)


T = np.arange(1, K + 1)
SIZES = [3, 4, 7, 12]


@pytest.mark.parametrize("n", SIZES)
def test_closed_forms_of_heat(n: int) -> None:
    complete = nodes_of("heat", from_networkx(nx.complete_graph(n)))
    np.testing.assert_allclose(complete, [1 / n + (1 - 1 / n) * np.exp(-T * n / (n - 1))] * n, atol=1e-14)
    modes = 1 - np.cos(2 * np.pi * np.arange(n) / n)
    ring = nodes_of("heat", from_networkx(nx.cycle_graph(n)))
    np.testing.assert_allclose(ring, [np.exp(-np.outer(T, modes)).mean(1)] * n, atol=1e-14)
    star = nodes_of("heat", from_networkx(nx.star_graph(n)))  # node 0 and n leaves; eigenvalues 0, 1 and 2
    np.testing.assert_allclose(star[0], (1 + np.exp(-2 * T)) / 2, atol=1e-14)
    leaf = (1 + np.exp(-2 * T)) / (2 * n) + (1 - 1 / n) * np.exp(-T)
    np.testing.assert_allclose(star[1:], [leaf] * n, atol=1e-14)
    # a path of n nodes folds a ring of 2n − 2: its modes are cosines
    path = nodes_of("heat", from_networkx(nx.path_graph(n)))
    values = 1 - np.cos(np.pi * np.arange(n) / (n - 1))
    end = np.where(np.isin(np.arange(n), (0, n - 1)), 1.0, 2.0) / (2 * n - 2)
    np.testing.assert_allclose(path[0], np.exp(-np.outer(T, values)) @ end, atol=1e-14)


@pytest.mark.parametrize("n", SIZES)
def test_closed_forms_of_pagerank(n: int) -> None:
    alpha = 1 / (T + 1)
    # on a complete graph a walk is at another node with q, whatever happened before
    complete = nodes_of("ppr", from_networkx(nx.complete_graph(n)))
    second = alpha / (1 + (1 - alpha) / (n - 1))
    np.testing.assert_allclose(complete, [1 / n + (1 - 1 / n) * second] * n, atol=1e-14)
    star = nodes_of("ppr", from_networkx(nx.star_graph(n)))
    back = alpha / (1 - (1 - alpha) ** 2)  # at the middle after every even number of steps
    np.testing.assert_allclose(star[0], back, atol=1e-14)
    np.testing.assert_allclose(star[1:], [alpha + (1 - alpha) ** 2 * back / n] * n, atol=1e-14)
    ring = nodes_of("ppr", from_networkx(nx.cycle_graph(n)))
    modes = np.cos(2 * np.pi * np.arange(n) / n)
    np.testing.assert_allclose(ring, [(alpha[:, None] / (1 - np.outer(1 - alpha, modes))).mean(1)] * n, atol=1e-14)
    circle = Data(edge_index=torch.tensor([[*range(n)], [*range(1, n), 0]]), num_nodes=n)  # back after n, 2n, … steps
    np.testing.assert_allclose(nodes_of("ppr", circle), [alpha / (1 - (1 - alpha) ** n)] * n, atol=1e-14)


@pytest.mark.parametrize("n", SIZES)
def test_closed_forms_of_resistance(n: int) -> None:
    k = n - 1
    complete = nodes_of("resistance", from_networkx(nx.complete_graph(n)), k)
    np.testing.assert_allclose(complete, np.full((n, k), 2 / n), atol=1e-13)
    d = np.arange(1, n)
    ring = nodes_of("resistance", from_networkx(nx.cycle_graph(n)), k)
    np.testing.assert_allclose(ring, [np.sort(d * (n - d) / n)] * n, atol=1e-13)
    path = nodes_of("resistance", from_networkx(nx.path_graph(n)), k)
    np.testing.assert_allclose(path[0], d, atol=1e-13)
    star = nodes_of("resistance", from_networkx(nx.star_graph(n)), n)
    np.testing.assert_allclose(star[0], np.ones(n), atol=1e-13)
    np.testing.assert_allclose(star[1:], [[1.0] + [2.0] * (n - 1)] * n, atol=1e-13)


def test_resistances_follow_the_scale_of_the_weights() -> None:
    data = from_networkx(nx.lollipop_graph(4, 3))
    for scale in (1e-30, 1e-3, 1e6, 1e299):
        weight = torch.full((data.num_edges,), scale, dtype=torch.float64)
        scaled = Data(edge_index=data.edge_index, edge_weight=weight, num_nodes=7)
        np.testing.assert_allclose(nodes_of("resistance", scaled) * scale, nodes_of("resistance", data), rtol=1e-12)


def test_weights_that_no_float64_can_hold_together_are_refused() -> None:
    path = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    for weight, message in (([1.0, 1.0, 1e-25, 1e-25, 1e-25, 1e-25], "differ too much"), ([1e-60] * 6, "too small")):
        with pytest.raises(ValueError, match=message):
            encode("resistance", path, 3, 2, edge_weight=torch.tensor(weight, dtype=torch.float64))


@pytest.mark.parametrize("node, pair", [("rwpe", "rrwp"), ("heat", "heat-pairs"), ("ppr", "ppr-pairs")])
def test_the_diagonal_of_pairs_is_the_encoding_of_nodes(node: str, pair: str) -> None:
    for data in references.two_hundred_graphs():
        np.testing.assert_allclose(_diagonal(pairs_of(pair, data)), nodes_of(node, data), rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", SIZES)
def test_closed_forms_of_pairs(n: int) -> None:
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    path, ring = from_networkx(nx.path_graph(n)), from_networkx(nx.cycle_graph(n))
    np.testing.assert_allclose(values_of("resistance-pairs", path)[:, :, 0], distance, atol=1e-13)
    np.testing.assert_allclose(values_of("resistance-pairs", ring)[:, :, 0], distance * (n - distance) / n, atol=1e-13)
    # from a node of a complete graph the walk is elsewhere with 1 − r, and there each other node is as probable
    walks = values_of("rrwp", from_networkx(nx.complete_graph(n)))
    back = (1 / n) + (1 - 1 / n) * (-1 / (n - 1)) ** T
    expected = np.where(np.eye(n, dtype=bool)[:, :, None], back, (1 - back) / (n - 1))
    np.testing.assert_allclose(walks, expected, atol=1e-14)
    # in a star from a leaf to the middle with each odd step, back to any leaf with each even one
    star = values_of("rrwp", from_networkx(nx.star_graph(n)))
    np.testing.assert_allclose(star[1:, 0], [T % 2] * n, atol=1e-14)
    np.testing.assert_allclose(star[1:, 1:], np.broadcast_to((1 - T % 2) / n, (n, n, K)), atol=1e-14)


def test_the_degree_in_unary_by_hand() -> None:
    edges = torch.tensor([[0, 0, 0, 1, 2], [1, 1, 0, 0, 0]])
    assert encode("degree", edges, 4, 2).tolist() == [[1, 1], [1, 0], [1, 0], [0, 0]]
    assert encode("degree", edges, 4, 4).tolist() == [[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    weighted = encode("degree", edges, 4, 3, edge_weight=torch.tensor([0.25, 0.25, 2.0, 0.0, 7.0]))
    assert weighted.tolist() == [[1, 1, 0.5], [0, 0, 0], [1, 1, 1], [0, 0, 0]]
