import math
import tracemalloc
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddRandomWalkPE

from lspe.encodings import graphs as shared
from lspe.encodings import large_walks, random_walk_encoding
from tests.graphs import (
    CORNER_CASES,
    CSL_SKIPS,
    bicyclopentyl,
    csl,
    cubic_8,
    decalin,
    from_networkx,
    permuted_batch,
    random_batches,
    random_graphs,
)

any_graph = {"directed": True, "weighted": True, "self_loops": True, "parallel_edges": True}


def exact_encoding(data: Data, k: int) -> list[list[Fraction]]:
    """By definition, in fractions: RW_ij = w_ij / Σ_j w_ij."""
    n = data.num_nodes
    adjacency = [[Fraction(0)] * n for _ in range(n)]
    weights = torch.ones(data.num_edges) if data.edge_weight is None else data.edge_weight
    for (i, j), w in zip(data.edge_index.t().tolist(), weights.tolist(), strict=True):
        adjacency[i][j] += Fraction(w)
    walk = [[w / sum(row) if sum(row) else Fraction(0) for w in row] for row in adjacency]
    power, diagonals = walk, []
    for _ in range(k):
        diagonals.append([power[i][i] for i in range(n)])
        power = [[sum(row[m] * walk[m][j] for m in range(n)) for j in range(n)] for row in power]
    return [list(row) for row in zip(*diagonals, strict=True)]


def encode(data: Data, k: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return random_walk_encoding(
        data.edge_index, data.num_nodes, k, edge_weight=data.edge_weight, batch=data.batch, dtype=dtype
    )


@settings(max_examples=150, deadline=None)
@given(st.one_of(random_graphs(max_nodes=6), random_graphs(max_nodes=5, **any_graph)), st.integers(1, 9))
def test_float32_rounding_is_the_only_error(data, k):
    encoding = encode(data, k)
    assert encoding.dtype == torch.float32
    for i, row in enumerate(exact_encoding(data, k)):
        for step, exact in enumerate(row):
            half_ulp = float(np.spacing(np.float32(exact))) / 2
            assert abs(Fraction(float(encoding[i, step])) - exact) <= Fraction(half_ulp) * (1 + Fraction(1, 10**6))


@settings(max_examples=100, deadline=None)
@given(random_batches(max_nodes=14), st.integers(1, 20))
def test_undirected_batches_agree_with_dense_powers(batch, k):
    encoding = encode(batch, k, torch.float64)
    for start, end, data in zip(batch.ptr, batch.ptr[1:], batch.to_data_list(), strict=False):
        graph = nx.Graph()
        graph.add_nodes_from(range(data.num_nodes))
        graph.add_edges_from(data.edge_index.t().tolist())
        adjacency = nx.to_numpy_array(graph)
        degree = adjacency.sum(0)
        walk = adjacency / np.where(degree > 0, degree, 1)  # A D^-1, as the paper writes it
        powers = [np.linalg.matrix_power(walk, step).diagonal() for step in range(1, k + 1)]
        np.testing.assert_allclose(encoding[start:end], np.stack(powers, 1), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", CORNER_CASES)
def test_agrees_with_pyg_on_unweighted_graphs(name):
    data = CORNER_CASES[name]
    torch.testing.assert_close(encode(data, 20), AddRandomWalkPE(20)(data).random_walk_pe, rtol=0, atol=2e-7)


def test_weights_count_unlike_in_pyg():
    edges = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 1, 0]])
    weighted = random_walk_encoding(edges, 3, 4, edge_weight=torch.tensor([2, 2, 1, 1, 3]))
    parallel = edges.repeat_interleave(torch.tensor([2, 2, 1, 1, 3]), dim=1)
    assert torch.equal(weighted, random_walk_encoding(parallel, 3, 4))
    # by hand: from 0 stay with 3/5 or go to 1; from 1 to 0 with 2/3 or to 2; from 2 to 1
    torch.testing.assert_close(weighted[:, 1], torch.tensor([9 / 25 + 4 / 15, 4 / 15 + 1 / 3, 1 / 3]))


def test_a_directed_walk_follows_the_edges():
    triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert random_walk_encoding(triangle, 3, 6).tolist() == [[0, 0, 1, 0, 0, 1]] * 3
    dead_end = torch.tensor([[0, 0, 1], [1, 2, 0]])
    assert random_walk_encoding(dead_end, 3, 4).tolist() == [[0, 0.5, 0, 0.25], [0, 0.5, 0, 0.25], [0, 0, 0, 0]]


def test_degrees_below_one_are_not_clipped():
    edges = torch.tensor([[0, 1], [1, 0]])
    assert random_walk_encoding(edges, 2, 2, edge_weight=torch.full((2,), 1e-30)).tolist() == [[0, 1], [0, 1]]


@settings(max_examples=100, deadline=None)
@given(random_batches(max_graphs=6, **any_graph) | random_batches(max_graphs=6), st.integers(1, 9))
def test_a_batch_has_the_bits_of_its_graphs_alone(batch, k):
    alone = torch.cat([encode(data, k, torch.float64) for data in batch.to_data_list()])
    assert torch.equal(encode(batch, k, torch.float64), alone)


@pytest.mark.parametrize("edges_a_node", [2, 3])
def test_the_bits_of_a_batch_of_all_sizes(edges_a_node):
    singles = [
        from_networkx(nx.gnm_random_graph(n, edges_a_node * n // 2, seed=n + 100 * copy))
        for n in range(1, 45)
        for copy in range(3)
    ]
    batch = Batch.from_data_list(singles)
    alone = torch.cat([encode(data, 20, torch.float64) for data in singles])
    assert torch.equal(encode(batch, 20, torch.float64), alone)


@settings(max_examples=100, deadline=None)
@given(random_batches(**any_graph), st.integers(0, 10**6))
def test_renaming_the_nodes_renames_the_rows(batch, seed):
    renamed, order = permuted_batch(batch, torch.Generator().manual_seed(seed))
    expected = encode(batch, 7, torch.float64)[order]
    torch.testing.assert_close(encode(renamed, 7, torch.float64), expected, rtol=0, atol=1e-14)


def test_edges_of_a_batch_may_stand_in_any_order():
    batch = Batch.from_data_list([decalin(), csl(11, 3), cubic_8()])
    shuffled = batch.edge_index[:, torch.randperm(batch.num_edges, generator=torch.Generator().manual_seed(0))]
    assert torch.equal(random_walk_encoding(shuffled, None, 8, batch=batch.batch), encode(batch, 8))


def test_graphs_without_nodes_are_passed_over():
    encoding = random_walk_encoding(torch.tensor([[0, 1], [1, 0]]), None, 2, batch=torch.tensor([1, 1, 3]))
    assert encoding.tolist() == [[0, 1], [0, 1], [0, 0]]
    assert random_walk_encoding(torch.empty(2, 0, dtype=torch.long), 0, 3).shape == (0, 3)


def test_many_graphs_need_few_steps_of_python():
    triangle = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    copies = 50_000
    edges = (triangle[:, None] + 3 * torch.arange(copies)[:, None]).reshape(2, -1)
    batch = torch.arange(copies).repeat_interleave(3)
    assert len(list(shared.check_graphs(edges, None, batch=batch).dense_chunks())) < copies / 1000
    encoding = random_walk_encoding(edges, None, 3, batch=batch)
    assert torch.equal(encoding, torch.tensor([0, 0.5, 0.25]).expand(3 * copies, 3))


def test_three_kinds_of_nodes_in_a_three_regular_graph():
    encoding = encode(cubic_8(), 4, torch.float64)
    for same in ([0, 1, 4, 5], [2, 7], [3, 6]):
        torch.testing.assert_close(encoding[same], encoding[same[:1]].expand(len(same), 4), rtol=0, atol=1e-15)
    assert encoding.round(decimals=9).unique(dim=0).size(0) == 3


def test_decalin_and_bicyclopentyl_differ_from_five_steps_on():
    def sorted_encodings(data: Data, k: int) -> list[list[float]]:
        return sorted(encode(data, k, torch.float64).round(decimals=9).tolist())

    assert sorted_encodings(decalin(), 4) == sorted_encodings(bicyclopentyl(), 4)
    assert sorted_encodings(decalin(), 5) != sorted_encodings(bicyclopentyl(), 5)


def test_twenty_steps_separate_the_ten_csl_classes():
    classes = [encode(csl(41, skip), 20) for skip in CSL_SKIPS]
    for encoding in classes:
        torch.testing.assert_close(encoding, encoding[:1].expand(41, 20), rtol=0, atol=1e-7)
    distances = torch.cdist(
        torch.stack([c[0] for c in classes]).double(), torch.stack([c[0] for c in classes]).double()
    )
    assert (distances + torch.eye(10)).min() > 1e-3


def large_graph(kind: str) -> Data:
    if kind == "sparse":
        return from_networkx(nx.gnm_random_graph(3000, 4500, seed=0))
    if kind == "weighted":
        data = from_networkx(nx.gnm_random_graph(400, 900, seed=1))
        weight = torch.rand(data.num_edges // 2, generator=torch.Generator().manual_seed(0))
        data.edge_weight = weight.repeat_interleave(2)
        return data
    if kind == "dense":
        return from_networkx(nx.gnp_random_graph(300, 0.5, seed=2))
    if kind == "mesh":
        return from_networkx(nx.grid_2d_graph(30, 40))
    if kind == "parts":
        return from_networkx(
            nx.disjoint_union_all([nx.cycle_graph(n) for n in (3, 70, 100, 200)] + [nx.empty_graph(9)])
        )
    directed = nx.gnm_random_graph(350, 900, seed=3, directed=True)
    return Data(edge_index=torch.tensor(list(directed.edges)).t(), num_nodes=350)


@pytest.mark.parametrize("elements", [2**19, 2**12])
@pytest.mark.parametrize("kind", ["sparse", "weighted", "dense", "directed", "mesh", "parts"])
def test_large_graphs_in_blocks_agree_with_dense_powers(kind, elements, monkeypatch):
    data = large_graph(kind)
    k = 5 if kind == "sparse" else 16
    monkeypatch.setattr(shared, "LARGEST_DENSE", 3000)
    dense = encode(data, k, torch.float64)
    monkeypatch.setattr(shared, "LARGEST_DENSE", 100)
    monkeypatch.setattr(large_walks, "_BLOCK_ELEMENTS", elements)
    torch.testing.assert_close(encode(data, k, torch.float64), dense, rtol=0, atol=1e-14)


def test_two_thousand_nodes_agree_with_the_definition():
    data = from_networkx(nx.barabasi_albert_graph(2000, 3, seed=0))
    walk = torch.zeros(2000, 2000, dtype=torch.float64)
    walk[data.edge_index[0], data.edge_index[1]] = 1.0
    walk /= walk.sum(1, keepdim=True)
    power, expected = walk, [walk.diagonal()]
    for _ in range(7):
        power = power @ walk
        expected.append(power.diagonal())
    torch.testing.assert_close(encode(data, 8, torch.float64), torch.stack(expected, 1), rtol=0, atol=1e-12)


def test_blocks_look_no_further_than_walks_go(monkeypatch):
    sizes = []
    within = large_walks._within
    monkeypatch.setattr(large_walks, "_within", lambda *a: sizes.append(within(*a).size) or within(*a))
    encode(from_networkx(nx.grid_2d_graph(40, 40)), 8)
    block = large_walks._BLOCK_ELEMENTS // 1600
    assert max(sizes) <= block + 2 * 4 * 41  # four lines of the mesh on each side


def test_small_and_large_graphs_in_one_batch(monkeypatch):
    monkeypatch.setattr(shared, "LARGEST_DENSE", 100)
    singles = [decalin(), large_graph("weighted"), csl(11, 2), large_graph("directed")]
    for data in singles:
        data.edge_weight = torch.ones(data.num_edges) if data.edge_weight is None else data.edge_weight
    alone = torch.cat([encode(data, 4, torch.float64) for data in singles])
    assert torch.equal(encode(Batch.from_data_list(singles), 4, torch.float64), alone)


def test_twenty_thousand_nodes_in_bounded_memory():
    n, k = 20_000, 6
    ring = torch.arange(n)
    edges = torch.stack([torch.cat([ring, (ring + 1) % n]), torch.cat([(ring + 1) % n, ring])])
    tracemalloc.start()
    encoding = random_walk_encoding(edges, n, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # one dense matrix would take 3.2e9
    steps = [math.comb(step, step // 2) / 2**step if step % 2 == 0 else 0.0 for step in range(1, k + 1)]
    torch.testing.assert_close(encoding, torch.tensor(steps).expand(n, k), rtol=1e-7, atol=0)


edge = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("k must be a whole number of at least 1, got 0", {"k": 0}),
        ("k must be a whole number of at least 1, got 2.0", {"k": 2.0}),
        (r"edge_index must be an integer tensor of shape \[2, number of edges\]", {"edge_index": edge.float()}),
        (r"got torch.int64 of shape \[3, 2\]", {"edge_index": torch.zeros(3, 2, dtype=torch.long)}),
        (r"edge 1 \(1 → 2\) points outside the graph: its 2 nodes", {"edge_index": torch.tensor([[0, 1], [1, 2]])}),
        (r"edge 0 \(-1 → 0\) points outside", {"edge_index": edge - 1}),
        ("num_nodes is missing", {"num_nodes": None}),
        ("num_nodes must not be negative", {"num_nodes": -1}),
        ("num_nodes is 2 but batch has 3 entries", {"batch": torch.tensor([0, 0, 1])}),
        ("node 1 belongs to graph 0 but follows a node of graph 1", {"batch": torch.tensor([1, 0])}),
        ("batch must not be negative", {"batch": torch.tensor([-1, 0])}),
        ("must be an integer tensor of shape .*complex64", {"edge_index": edge.to(torch.complex64)}),
        ("must be an integer tensor of shape .*bool", {"edge_index": edge.bool()}),
        ("batch must be an integer tensor", {"batch": torch.tensor([0.0, 0.0])}),
        (r"edge 0 \(0 → 1\) joins graph 0 with graph 1", {"batch": torch.tensor([0, 1])}),
        ("edge_weight must have one entry for each of the 2 edges", {"edge_weight": torch.ones(3)}),
        (r"edge_weight\[1\] of edge 1 → 0 is -2.0: .* not negative", {"edge_weight": torch.tensor([1.0, -2.0])}),
        (r"edge_weight\[0\] of edge 0 → 1 is nan", {"edge_weight": torch.tensor([math.nan, 1.0])}),
        (r"edge_weight\[1\] of edge 1 → 0 is inf", {"edge_weight": torch.tensor([1.0, math.inf])}),
    ],
)
def test_bad_input_is_named(message, change):
    arguments = {"edge_index": edge, "num_nodes": 2, "k": 3, **change}
    with pytest.raises(ValueError, match=message):
        random_walk_encoding(**arguments)
