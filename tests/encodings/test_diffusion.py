import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.utils import get_laplacian, to_dense_adj, to_dense_batch

from lspe.encodings import diffusion_kernel
from tests.graphs import from_edges, permuted_batch, random_batches


def kernel_of(data: Data, beta: float, steps: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return diffusion_kernel(data.edge_index, data.num_nodes, beta=beta, steps=steps, batch=data.batch, dtype=dtype)


@settings(max_examples=80, deadline=None)
@given(random_batches(max_nodes=12), st.floats(0.05, 0.5), st.integers(1, 17))
def test_every_graph_has_its_dense_power_and_zeros_around_it(batch, beta, steps):
    kernel = kernel_of(batch, beta, steps)
    largest = int(batch.ptr.diff().max())
    assert kernel.shape == (batch.num_graphs, largest, largest)
    for own, data in zip(kernel, batch.to_data_list(), strict=True):
        n = data.num_nodes
        edges, weight = get_laplacian(data.edge_index, normalization="sym", num_nodes=n, dtype=torch.float64)
        laplacian = to_dense_adj(edges, edge_attr=weight, max_num_nodes=n)[0].numpy()
        expected = np.linalg.matrix_power(np.eye(n) - beta * laplacian, steps)
        np.testing.assert_allclose(own[:n, :n], expected, rtol=0, atol=1e-7)  # PyG rounds the weights to float32
        assert not own[n:].any()
        assert not own[:, n:].any()


def test_a_graph_by_hand():
    edge_and_isolated_node = from_edges(3, [(0, 1)])
    kernel = kernel_of(edge_and_isolated_node, 0.25, 2)[0]
    expected = torch.tensor([[0.625, 0.375, 0], [0.375, 0.625, 0], [0, 0, 0.5625]])
    torch.testing.assert_close(kernel, expected.double(), rtol=0, atol=1e-15)


def test_the_layout_is_that_of_to_dense_batch():
    batch = Batch.from_data_list([from_edges(2, [(0, 1)]), from_edges(5, [(0, 4)]), from_edges(1, [])])
    _, is_node = to_dense_batch(torch.zeros(batch.num_nodes, 1), batch.batch)
    kernel = kernel_of(batch, 0.25, 16, torch.float32)
    assert kernel.dtype == torch.float32
    assert torch.equal(kernel.diagonal(dim1=1, dim2=2) > 0, is_node)


@settings(max_examples=60, deadline=None)
@given(random_batches(max_graphs=6))
def test_a_batch_has_the_bits_of_its_graphs_alone(batch):
    for own, data in zip(kernel_of(batch, 0.25, 16), batch.to_data_list(), strict=True):
        assert torch.equal(own[: data.num_nodes, : data.num_nodes], kernel_of(data, 0.25, 16)[0])


@settings(max_examples=60, deadline=None)
@given(random_batches(min_graphs=1, max_graphs=1), st.integers(0, 10**6))
def test_renaming_the_nodes_renames_rows_and_columns(batch, seed):
    renamed, order = permuted_batch(batch, torch.Generator().manual_seed(seed))
    expected = kernel_of(batch, 0.3, 5)[:, order][:, :, order]
    torch.testing.assert_close(kernel_of(renamed, 0.3, 5), expected, rtol=0, atol=1e-14)


def test_directions_do_not_count_and_weights_do():
    one_way = torch.tensor([[0, 1], [1, 2]])
    both = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    assert torch.equal(diffusion_kernel(one_way, 3, beta=0.25, steps=3), diffusion_kernel(both, 3, beta=0.25, steps=3))
    twice = diffusion_kernel(both, 3, beta=0.25, steps=1, edge_weight=torch.tensor([3, 3, 1, 1]), dtype=torch.float64)
    torch.testing.assert_close(float(twice[0, 0, 1]), 0.25 * 3 / math.sqrt(3 * 4))


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("steps must be a whole number of at least 1, got 0", {"steps": 0}),
        ("beta must be finite, got nan", {"beta": math.nan}),
        (r"edge 0 \(0 → 1\) joins graph 0 with graph 1", {"batch": torch.tensor([0, 1])}),
    ],
)
def test_bad_input_is_named(message, change):
    with pytest.raises(ValueError, match=message):
        diffusion_kernel(torch.tensor([[0], [1]]), **{"num_nodes": 2, "beta": 0.25, "steps": 16, **change})
