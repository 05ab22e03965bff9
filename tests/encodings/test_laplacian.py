import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE
from torch_geometric.utils import to_undirected

from lspe.encodings import LaplacianEigen, laplacian, laplacian_encoding, random_signs
from lspe.encodings import graphs as shared
from tests.graphs import (
    CORNER_CASES,
    csl,
    cubic_8,
    decalin,
    from_edges,
    from_networkx,
    permuted_batch,
    random_batches,
)


def encode(data: Data, k: int, dtype: torch.dtype = torch.float64) -> LaplacianEigen:
    return laplacian_encoding(
        data.edge_index, data.num_nodes, k, edge_weight=data.edge_weight, batch=data.batch, dtype=dtype
    )


def dense_laplacian(data: Data) -> np.ndarray:
    """I − D^-1/2 A D^-1/2 by definition; an isolated node has 1 on the diagonal."""
    n = data.num_nodes
    adjacency = np.zeros((n, n))
    weight = np.ones(data.num_edges) if data.edge_weight is None else data.edge_weight.numpy()
    np.add.at(adjacency, tuple(data.edge_index.numpy()), weight)
    adjacency = np.maximum(adjacency, adjacency.T)
    scale = np.array([d**-0.5 if d > 0 else 0.0 for d in adjacency.sum(1)])
    return np.eye(n) - adjacency * scale * scale[:, None]


def assert_smallest_eigenpairs(vectors: np.ndarray, values: np.ndarray, matrix: np.ndarray, atol: float) -> None:
    """The columns are orthonormal eigenvectors of the eigenvalues 1 … k, and zero from n on."""
    n, k = vectors.shape
    there = min(k, n - 1)
    assert not vectors[:, there:].any()
    assert not values[there:].any()
    np.testing.assert_allclose(values[:there], np.linalg.eigvalsh(matrix)[1 : there + 1], rtol=0, atol=atol)
    vectors = vectors[:, :there]
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(there), rtol=0, atol=atol)
    np.testing.assert_allclose(matrix @ vectors, vectors * values[:there], rtol=0, atol=atol)


@settings(max_examples=100, deadline=None)
@given(
    random_batches(max_nodes=12) | random_batches(directed=True, weighted=True, self_loops=True, parallel_edges=True),
    st.integers(1, 14),
)
def test_eigenpairs_of_every_graph(batch, k):
    vectors, values = encode(batch, k)
    assert values.shape == (batch.num_graphs, k)
    for i, data in enumerate(batch.to_data_list()):
        own = vectors[batch.ptr[i] : batch.ptr[i + 1]].numpy()
        assert_smallest_eigenpairs(own, values[i].numpy(), dense_laplacian(data), atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 50, 200, 201])
@pytest.mark.parametrize("kind", ["path", "ring", "star", "complete", "grid", "nearly apart"])
def test_eigenpairs_up_to_where_lapack_begins(kind: str, n: int) -> None:
    """Eigenvalues that occur often, that are almost the same, and weights of very different size."""
    if kind == "grid":
        graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(n // 10 + 1, 10))
    elif kind == "ring":
        graph = nx.cycle_graph(max(n, 3))
    else:
        graph = {"star": nx.star_graph(n - 1), "complete": nx.complete_graph(n)}.get(kind, nx.path_graph(n))
    data = from_networkx(graph)
    if kind == "nearly apart":
        data.edge_weight = torch.where(data.edge_index.sum(0) == n - 1, 1e-14, 1.0).double()
    vectors, values = encode(data, data.num_nodes)
    assert_smallest_eigenpairs(vectors.numpy(), values[0].numpy(), dense_laplacian(data), atol=1e-12)


@pytest.mark.parametrize("name", ["path", "star", "complete", "decalin", "tree", "CSL(11,3)"])
def test_eigenvalues_agree_with_networkx(name):
    data = CORNER_CASES[name]
    graph = nx.Graph(data.edge_index.t().tolist())
    expected = np.sort(nx.normalized_laplacian_spectrum(graph))[1:]
    np.testing.assert_allclose(encode(data, data.num_nodes - 1).values[0], expected, rtol=0, atol=1e-12)


def test_eigenvectors_agree_with_pyg_up_to_the_sign():
    data = from_edges(9, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2, 5), (5, 6), (6, 7), (1, 8)])
    ours = encode(data, 5).vectors
    theirs = AddLaplacianEigenvectorPE(5, is_undirected=True)(data).laplacian_eigenvector_pe.double()
    torch.testing.assert_close((ours * theirs).sum(0).abs(), torch.ones(5).double(), rtol=0, atol=1e-6)


def test_a_directed_graph_is_made_undirected():
    one_way = torch.tensor([[0, 1, 2, 3, 1, 0], [1, 2, 3, 0, 3, 1]])[:, :5]
    mixed = torch.cat([one_way, torch.tensor([[1], [0]])], dim=1)
    expected = laplacian_encoding(to_undirected(one_way), 4, 3)
    for edges in (one_way, mixed):
        got = laplacian_encoding(edges, 4, 3)
        assert torch.equal(got.vectors, expected.vectors)
        assert torch.equal(got.values, expected.values)


def test_a_graph_no_larger_than_k_is_padded_with_zeros():
    vectors, values = encode(from_edges(3, [(0, 1), (1, 2)]), 5)
    torch.testing.assert_close(values, torch.tensor([[1.0, 2, 0, 0, 0]]).double())
    torch.testing.assert_close(vectors[:, 0].abs(), torch.tensor([0.5, 0, 0.5]).double().sqrt())
    assert not vectors[:, 2:].any()
    assert not encode(from_edges(1, []), 2).vectors.any()


@settings(max_examples=60, deadline=None)
@given(random_batches(max_graphs=6), st.integers(1, 9))
def test_a_batch_has_the_bits_of_its_graphs_alone(batch, k):
    together = encode(batch, k)
    alone = [encode(data, k) for data in batch.to_data_list()]
    assert torch.equal(together.vectors, torch.cat([one.vectors for one in alone]))
    assert torch.equal(together.values, torch.cat([one.values for one in alone]))


def test_the_bits_of_a_batch_of_all_sizes():
    singles = [from_networkx(nx.gnm_random_graph(n, n, seed=n + 100 * copy)) for n in range(1, 45) for copy in range(3)]
    together = encode(Batch.from_data_list(singles), 8).vectors
    assert torch.equal(together, torch.cat([encode(data, 8).vectors for data in singles]))


@settings(max_examples=60, deadline=None)
@given(random_batches(), st.integers(0, 10**6))
def test_renaming_the_nodes_renames_the_rows_of_each_eigenspace(batch, seed):
    renamed, order = permuted_batch(batch, torch.Generator().manual_seed(seed))
    k = 12
    before, after = encode(batch, k), encode(renamed, k)
    torch.testing.assert_close(after.values, before.values, rtol=0, atol=1e-12)
    for i in range(batch.num_graphs):
        own = slice(int(batch.ptr[i]), int(batch.ptr[i + 1]))
        # the space of an eigenvalue; that of the first one lacks an arbitrary vector
        first = float(np.linalg.eigvalsh(dense_laplacian(batch.get_example(i)))[0])
        for value in before.values[i].unique():
            same = (before.values[i] - value).abs() < 1e-9
            if abs(float(value) - first) > 1e-9:
                u, v = before.vectors[order][own][:, same], after.vectors[own][:, same]
                torch.testing.assert_close(u @ u.T, v @ v.T, rtol=0, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(random_batches())
def test_the_first_of_the_largest_entries_is_positive(batch):
    vectors = encode(batch, 6).vectors
    for i in range(batch.num_graphs):
        for column in vectors[batch.ptr[i] : batch.ptr[i + 1]].T:
            largest = [float(x) for x in column if abs(x) >= (1 - 1e-7) * column.abs().max()]
            assert largest[0] >= 0


def test_rounding_does_not_turn_the_sign():
    vector = torch.tensor([0.1, -0.7, 0.7, 0.05]).double()
    noise = 1e-12 * torch.randn(200, 4, generator=torch.Generator().manual_seed(0)).double()
    columns = torch.cat([vector + noise, -vector + noise]).T[None]
    assert (laplacian._with_fixed_sign(columns)[0, 1] > 0).all()


def test_random_signs_are_drawn_for_each_column_and_graph():
    batch = Batch.from_data_list([decalin(), csl(11, 2), cubic_8()] * 40)
    vectors = encode(batch, 6).vectors
    flipped = random_signs(vectors, batch.batch, torch.Generator().manual_seed(0))
    ratio = torch.where(vectors.abs() > 1e-9, flipped / vectors, torch.nan)
    signs = torch.stack([graph.nanmean(0) for graph in ratio.split(batch.ptr.diff().tolist())])
    assert torch.equal(signs.abs(), torch.ones_like(signs))
    assert (signs.mean(0).abs() < 0.35).all()  # 120 graphs: more than 3 standard deviations
    assert signs.unique(dim=0).size(0) > 50
    assert torch.equal(flipped, random_signs(vectors, batch.batch, torch.Generator().manual_seed(0)))
    assert not torch.equal(flipped, random_signs(vectors, batch.batch, torch.Generator().manual_seed(1)))
    one_graph = random_signs(vectors[:10], generator=torch.Generator().manual_seed(0))
    assert torch.equal(one_graph.abs(), vectors[:10].abs())


def several_parts() -> nx.Graph:
    parts = [nx.cycle_graph(40), nx.cycle_graph(40), nx.star_graph(30), nx.empty_graph(3), nx.path_graph(2)]
    return nx.disjoint_union_all(parts)


def equal_legs() -> nx.Graph:
    """Twelve paths from one node: a single Lanczos run finds too few of the eleven equal eigenvalues."""
    return nx.compose_all([nx.path_graph(["hub", *((leg, i) for i in range(30))]) for leg in range(12)])


LARGE = {
    "equal legs": equal_legs(),
    "path": nx.path_graph(90),
    "star: one eigenvalue 88 times": nx.star_graph(90),
    "cycle: every eigenvalue twice": nx.cycle_graph(100),
    "torus": nx.grid_2d_graph(9, 9, periodic=True),
    "complete bipartite": nx.complete_bipartite_graph(40, 50),
    "regular": nx.random_regular_graph(4, 100, seed=0),
    "scale-free": nx.barabasi_albert_graph(120, 2, seed=0),
    "several parts": several_parts(),
    "more parts than k": nx.disjoint_union_all([nx.path_graph(3)] * 30),
    "edgeless": nx.empty_graph(60),
}


@pytest.mark.parametrize("name", LARGE)
def test_sparse_eigenpairs_are_the_smallest(name, monkeypatch):
    monkeypatch.setattr(shared, "LARGEST_DENSE", 20)
    data = from_networkx(LARGE[name])
    vectors, values = encode(data, 9)
    assert_smallest_eigenpairs(vectors.numpy(), values[0].numpy(), dense_laplacian(data), atol=1e-10)
    assert torch.equal(vectors, encode(data, 9).vectors)


def test_sparse_eigenpairs_with_weights_and_directions(monkeypatch):
    graph = nx.gnm_random_graph(150, 400, seed=0, directed=True)
    data = Data(edge_index=torch.tensor(list(graph.edges)).t(), num_nodes=150)
    data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0)).double()
    data.edge_weight[::7] = 0
    monkeypatch.setattr(shared, "LARGEST_DENSE", 20)
    vectors, values = encode(data, 9)
    assert_smallest_eigenpairs(vectors.numpy(), values[0].numpy(), dense_laplacian(data), atol=1e-10)


def test_a_large_graph_in_a_batch_of_small_ones(monkeypatch):
    monkeypatch.setattr(shared, "LARGEST_DENSE", 20)
    singles = [decalin(), from_networkx(nx.random_regular_graph(3, 60, seed=0)), cubic_8()]
    together = encode(Batch.from_data_list(singles), 4)
    assert torch.equal(together.vectors, torch.cat([encode(data, 4).vectors for data in singles]))
    assert torch.equal(together.values, torch.cat([encode(data, 4).values for data in singles]))


def test_three_thousand_nodes_agree_with_the_dense_solver():
    graph = nx.disjoint_union(nx.random_regular_graph(3, 1600, seed=0), nx.random_labeled_tree(1400, seed=0))
    data = from_networkx(graph)
    sparse = encode(data, 6)
    matrix = dense_laplacian(data)
    torch.testing.assert_close(
        torch.from_numpy(matrix) @ sparse.vectors, sparse.vectors * sparse.values, rtol=0, atol=1e-12
    )
    parts = np.split(np.arange(3000), [1600])
    expected = np.sort(np.concatenate([np.linalg.eigvalsh(matrix[np.ix_(part, part)]) for part in parts]))
    np.testing.assert_allclose(sparse.values[0], expected[1:7], rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1000, 10_000])
def test_a_long_path_has_its_known_eigenvalues(n):
    vectors, values = encode(from_networkx(nx.path_graph(n)), 5)
    angles = torch.arange(1, 6).double() * torch.pi / (n - 1)
    torch.testing.assert_close(values[0], 1 - angles.cos(), rtol=1e-7, atol=1e-14)
    # the eigenvectors of a path are D^1/2 cos(angle · i)
    waves = (torch.arange(n).double()[:, None] * angles).cos()
    waves[1:-1] *= 2**0.5
    waves /= waves.norm(dim=0)
    torch.testing.assert_close((vectors * waves).sum(0).abs(), torch.ones(5).double(), rtol=0, atol=1e-9)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        laplacian_encoding(torch.tensor([[0, 1], [1, 0]]), 2, 0)
    with pytest.raises(ValueError, match=r"edge 1 \(1 → 2\) points outside the graph"):
        laplacian_encoding(torch.tensor([[0, 1], [1, 2]]), 2, 1)
