"""A batch as bare tensors is PyG's batch of the same graphs to those who only look at it."""

import numpy as np
import pytest
import torch

from lspe import smiles_to_graphs
from lspe.data import PackedGraphs
from lspe.nn.blocks import run_in_blocks
from tests.members import SMILES, member


@pytest.fixture
def graphs() -> PackedGraphs:
    return smiles_to_graphs(SMILES).graphs.with_encoding("rwpe", 8)


def test_tensors_are_those_of_the_batch(graphs: PackedGraphs) -> None:
    rows = [3, 0, 3, 7]
    tensors, batch = graphs.tensors(rows), graphs.batch(rows)
    assert set(tensors.to_dict()) == set(batch.to_dict()) - {"ptr"}
    for name, value in tensors.to_dict().items():
        assert torch.equal(value, batch[name])
        assert torch.equal(getattr(tensors, name), value)
        assert tensors.is_node_attr(name) == batch.is_node_attr(name)
        assert tensors.is_edge_attr(name) == batch.is_edge_attr(name)
    assert (tensors.num_nodes, tensors.num_graphs) == (batch.num_nodes, batch.num_graphs)
    assert torch.equal(tensors.to("cpu").x, batch.x)
    assert getattr(tensors, "y", None) is None


def test_a_network_says_the_same_of_both_and_in_blocks(graphs: PackedGraphs) -> None:
    network = member("regression", "model.k=8", "model.size_norm=false").network
    rows = np.arange(len(graphs))
    with torch.no_grad():
        expected = network.run(graphs.batch(rows))
        found = network.run(graphs.tensors(rows))
        in_blocks = run_in_blocks(network, graphs.tensors(rows), edges_at_once=20)
    assert torch.equal(found.output, expected.output)
    torch.testing.assert_close(in_blocks.output, expected.output, rtol=1e-4, atol=1e-5)
