"""The public checks notice what they are there to notice."""

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv

from lspe import testing
from lspe.encodings import LaplacianEncoding
from tests.graphs import decalin, from_edges, ring

GRAPHS = [decalin(), from_edges(4, ring(4))]


def with_x(data: Data) -> Data:
    data = data.clone()
    data.x = torch.arange(float(data.num_nodes * 3)).view(-1, 3).sin()
    return data


def test_permutation() -> None:
    conv = GCNConv(3, 2)
    data = Batch.from_data_list([with_x(graph) for graph in GRAPHS])
    testing.check_permutation_equivariance(lambda d: conv(d.x, d.edge_index), data)
    with pytest.raises(AssertionError, match=r"differ by .* after renumbering"):
        testing.check_permutation_equivariance(lambda d: d.x * torch.arange(len(d.x)).unsqueeze(1), data)
    testing.check_permutation_equivariance(lambda d: d.x.sum(0, keepdim=True), data, level="graph")
    with pytest.raises(AssertionError, match="differ by"):
        testing.check_permutation_equivariance(lambda d: d.x[:1], data, level="graph")


def test_batching() -> None:
    graphs = [with_x(graph) for graph in GRAPHS]
    conv = GCNConv(3, 2)
    testing.check_batch_equals_singles(lambda d: conv(d.x, d.edge_index), graphs)
    with pytest.raises(AssertionError, match="between a batch and its graphs"):
        testing.check_batch_equals_singles(lambda d: d.x - d.x.mean(0), graphs)
    with pytest.raises(AssertionError, match="one row per graph"):
        testing.check_batch_equals_singles(lambda d: d.x, graphs, level="graph")


def test_signs() -> None:
    data = LaplacianEncoding(3)(decalin())
    testing.check_sign_invariance(lambda d: d.laplacian_eigenvector_pe.abs(), data)
    with pytest.raises(AssertionError, match="flipping signs"):
        testing.check_sign_invariance(lambda d: d.laplacian_eigenvector_pe.exp(), data)


def test_finite() -> None:
    data = with_x(decalin())
    weight = torch.zeros(3, requires_grad=True)
    testing.check_finite(lambda d: d.x @ weight, data, [weight])
    with pytest.raises(AssertionError, match="values are not finite"):
        testing.check_finite(lambda d: (d.x @ weight).log(), data)
    with pytest.raises(AssertionError, match="gradient of parameter 0"):
        testing.check_finite(lambda d: (d.x @ weight).square().sqrt(), data, [weight])
