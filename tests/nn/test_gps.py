"""GPS and the feed-forward block: their equations by hand, their numbers of parameters, and what they leave alone."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.nn import GCNConv, GPSConv

from lspe.experiment import build_network, count_parameters, override, read_experiment
from lspe.nn import GPS, FeedForward, Topology
from lspe.nn.gps import GraphAttention
from tests.graphs import CORNER_CASES

D = 8


def topology(*names: str) -> Topology:
    return Topology.of(Batch.from_data_list([CORNER_CASES[name] for name in names]))


def parameters(module: nn.Module | None) -> int:
    return 0 if module is None else sum(one.numel() for one in module.parameters())


def test_attention_is_that_of_pytorch() -> None:
    torch.manual_seed(0)
    graph = topology("decalin", "one node", "star")
    attention = GraphAttention(D, D, 2).double()
    theirs = nn.MultiheadAttention(D, 2, batch_first=True).double()
    theirs.in_proj_weight.data = torch.cat([attention.Q.weight, attention.K.weight, attention.V.weight]).detach()
    theirs.in_proj_bias.data = torch.cat([attention.Q.bias, attention.K.bias, attention.V.bias]).detach()
    theirs.out_proj.weight.data = torch.eye(D).double()
    theirs.out_proj.bias.data.zero_()
    x = torch.randn(graph.num_nodes, D, dtype=torch.float64)
    ours = attention(x, graph.pairs)
    for number in range(3):
        nodes = x[graph.batch == number][None]
        torch.testing.assert_close(ours[graph.batch == number], theirs(nodes, nodes, nodes)[0][0])


def test_without_positions_it_is_the_layer_of_pyg() -> None:
    """GPSConv of PyG with the same weights, whose block ends in the same normalisation."""
    torch.manual_seed(0)
    conv = GCNConv(D, D)
    theirs = GPSConv(D, conv, heads=2).double()
    ours = GPS(conv, None, D, 2).double()
    for name, part in zip(("Q", "K", "V"), theirs.attn.in_proj_weight.chunk(3), strict=True):
        getattr(ours.attention_h, name).weight.data = part.detach().clone()
    for name, part in zip(("Q", "K", "V"), theirs.attn.in_proj_bias.chunk(3), strict=True):
        getattr(ours.attention_h, name).bias.data = part.detach().clone()
    ours.O.load_state_dict(theirs.attn.out_proj.state_dict())
    ours.feed_forward.W1.load_state_dict(theirs.mlp[0].state_dict())
    ours.feed_forward.W2.load_state_dict(theirs.mlp[3].state_dict())
    graph = topology("decalin", "path", "star")
    h = torch.randn(graph.num_nodes, D, dtype=torch.float64)
    e = torch.randn(graph.edges.count, D, dtype=torch.float64)
    for training in (True, False):
        expected = theirs.train(training)(h, graph.edge_index, graph.batch)
        torch.testing.assert_close(ours.train(training)(h, None, e, graph)[0], expected)


def test_a_graph_without_nodes_does_no_harm() -> None:
    graph = Topology(torch.tensor([[0, 1], [1, 0]]), 2, torch.tensor([1, 1]), num_graphs=3)
    x = torch.randn(2, D, requires_grad=True)
    out = GraphAttention(D, D, 2)(x, graph.pairs)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("norm", ["pre-norm", "post-norm"])
def test_feed_forward_by_hand(norm: str) -> None:
    torch.manual_seed(0)
    block = FeedForward(D, norm).double()
    h = torch.randn(6, D, dtype=torch.float64)
    normed = F.batch_norm(h, None, None, block.norm_h.weight, block.norm_h.bias, training=True)
    expected = h + block.W2(torch.relu(block.W1(normed)))
    if norm == "post-norm":
        expected = h + block.W2(torch.relu(block.W1(h)))
        expected = F.batch_norm(expected, None, None, block.norm_h.weight, block.norm_h.bias, training=True)
    p, e = torch.randn(6, D), torch.randn(3, D)
    h_new, p_new, e_new = block(h, p, e, topology("star"))
    torch.testing.assert_close(h_new, expected)
    assert p_new is p
    assert e_new is e


def test_numbers_of_parameters_are_those_told() -> None:
    for d in (8, 20):
        assert parameters(FeedForward(d)) == 4 * d**2 + 5 * d
        assert parameters(GPS(nn.Identity(), None, d, 4)) == 8 * d**2 + 13 * d
        assert parameters(GPS(nn.Identity(), nn.Identity(), d, 4)) == 15 * d**2 + 17 * d


def test_the_block_stands_behind_every_layer_and_nothing_else_changes() -> None:
    usual = read_experiment("zinc/gatedgcn-lspe")
    longer = override(usual, ["model.feed_forward=pre-norm"])
    d, layers = usual.model.hidden_dim, usual.model.layers
    assert count_parameters(longer) == count_parameters(usual) + layers * (4 * d**2 + 5 * d)
    network = build_network(longer)
    assert [type(layer).__name__ for layer in network.layers] == ["GatedGCN", "FeedForward"] * layers
