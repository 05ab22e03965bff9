"""A sketch of random walks: its angles are those of the walks."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from lspe.encodings import encode, walk_sketch
from tests.graphs import CORNER_CASES, from_networkx

PATH = "lspe.encodings.walk_sketch:WALK_SKETCH"


def cosines(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 0, length, 1)
    return unit @ unit.T


def test_with_enough_columns_the_angles_are_those_of_the_walks() -> None:
    graph = nx.karate_club_graph()
    data = from_networkx(graph)
    adjacency = nx.to_numpy_array(graph, weight=None)
    walk = adjacency / adjacency.sum(axis=1, keepdims=True)
    ends = sum(
        row / np.linalg.norm(row, axis=1, keepdims=True)
        for row in (np.linalg.matrix_power(walk, m) for m in range(2, 9))
    )
    errors = []
    for k in (64, 20_000):
        ours = walk_sketch(data.edge_index, 34, k, dtype=torch.float64).numpy()
        errors.append(np.abs(cosines(ours) - cosines(ends)).max())
        expected = np.sqrt(k) * adjacency.sum(axis=1) ** 0.25
        np.testing.assert_allclose(np.linalg.norm(ours, axis=1), expected, rtol=1e-12)
    assert errors[1] < 0.04 < errors[0] < 0.6


def test_a_batch_has_the_bits_of_its_graphs_alone() -> None:
    singles = [from_networkx(nx.gnm_random_graph(n, 2 * n, seed=n)) for n in range(1, 25)] + [*CORNER_CASES.values()]
    for data in singles:
        data.edge_weight = None
    batch = Batch.from_data_list(singles)
    alone = torch.cat([encode(PATH, data.edge_index, data.num_nodes, 7) for data in singles])
    assert torch.equal(encode(PATH, batch.edge_index, batch.num_nodes, 7, batch=batch.batch), alone)


def test_weights_count_and_isolated_nodes_are_zero() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    plain = walk_sketch(edges, 4, 5)
    assert not plain[3].any()
    assert plain.dtype is torch.float32
    torch.testing.assert_close(walk_sketch(edges, 4, 5, edge_weight=torch.ones(4)), plain)
    assert not torch.allclose(walk_sketch(edges, 4, 5, edge_weight=torch.tensor([1.0, 1, 5, 5]))[1], plain[1])
    twice = torch.cat([edges, edges], dim=1)
    torch.testing.assert_close(walk_sketch(twice, 4, 5), walk_sketch(edges, 4, 5, edge_weight=torch.full((4,), 2.0)))
    with pytest.raises(ValueError, match="k must be a whole number"):
        walk_sketch(edges, 4, 0)
