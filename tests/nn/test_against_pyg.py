"""Our layers against PyG's own operators, where PyG has the same thing."""

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATv2Conv, GCNConv, GINEConv, PNAConv, ResGatedGraphConv, TransformerConv
from torch_geometric.nn.aggr import SumAggregation
from torch_geometric.utils import get_laplacian, scatter, to_dense_adj

from lspe.nn import LSPE, EdgeSum, GatedGCN, PrincipalAggregation, Topology, center_and_normalize, positional_loss
from lspe.nn.readout import pool
from tests.graphs import CORNER_CASES

GRAPHS = Batch.from_data_list([CORNER_CASES[key] for key in ("decalin", "star", "first and last node isolated")])


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def test_unnormalised_gate_is_residual_gated_graph_convolution() -> None:
    """PyG's ResGatedGraphConv sums σ(η̂) ⊙ v without dividing by Σσ + ε: multiply ours back."""
    conv = ResGatedGraphConv(6, 6, bias=False).double()
    x = random(GRAPHS.num_nodes, 6)
    layer = GatedGCN(6).double()
    with torch.no_grad():
        for ours, theirs in ((layer.B1, conv.lin_key), (layer.B2, conv.lin_query), (layer.A2, conv.lin_value)):
            ours.weight.copy_(theirs.weight)
            ours.bias.copy_(theirs.bias)
        for unused in (*layer.A1.parameters(), *layer.B3.parameters()):
            unused.zero_()
    e = torch.zeros(GRAPHS.edge_index.size(1), 6, dtype=torch.float64)
    sums, _, logits = layer.convolution(x, None, e, Topology.of(GRAPHS))
    total = scatter(torch.sigmoid(logits), GRAPHS.edge_index[1], dim_size=GRAPHS.num_nodes, reduce="sum")
    torch.testing.assert_close(sums * (total + 1e-6) + conv.lin_skip(x), conv(x, GRAPHS.edge_index))


@pytest.mark.parametrize("towers", [1, 3])
def test_principal_aggregation_is_pna_conv(towers: int) -> None:
    """The same message, aggregates and update as PNAConv, its maps copied into ours.

    But for std, to which PyG adds its small constant in another way.
    """
    dim, edge_dim, aggregators = 6, 4, ["mean", "max", "min", "sum"]
    degrees = torch.bincount(torch.bincount(GRAPHS.edge_index[1], minlength=GRAPHS.num_nodes))
    conv = PNAConv(
        dim,
        dim,
        aggregators=aggregators,
        scalers=["identity", "amplification", "attenuation"],
        deg=degrees,
        edge_dim=edge_dim,
        towers=towers,
        divide_input=True,
    ).double()
    ours = PrincipalAggregation(
        dim, dim, edge_dim, delta=float(conv.aggr_module.avg_deg_log), towers=towers, aggregators=aggregators
    ).double()
    width = dim // towers
    with torch.no_grad():
        for t in range(towers):
            of_target, of_source, of_edge = conv.pre_nns[t][0].weight.split(width, dim=1)
            ours.message.weight[t] = torch.cat([of_source, of_target, of_edge @ conv.edge_encoder.weight], dim=1)
            ours.message.bias[t] = conv.pre_nns[t][0].bias + of_edge @ conv.edge_encoder.bias
            ours.update.weight[t] = conv.post_nns[t][0].weight
            ours.update.bias[t] = conv.post_nns[t][0].bias
        conv.lin.weight.copy_(torch.eye(dim))
        conv.lin.bias.zero_()
    x, e = random(GRAPHS.num_nodes, dim), random(GRAPHS.edge_index.size(1), edge_dim)
    torch.testing.assert_close(ours(x, e, Topology.of(GRAPHS)), conv(x, GRAPHS.edge_index, e))


CONVS = {
    "gine": lambda i: GINEConv(torch.nn.Linear(i, 6), edge_dim=4),
    "gatv2": lambda i: GATv2Conv(i, 3, heads=2, edge_dim=4),
    "transformer": lambda i: TransformerConv(i, 6, edge_dim=4),
    "gcn": lambda i: GCNConv(i, 6),
    "gatv2 without edges": lambda i: GATv2Conv(i, 6),
}


@pytest.mark.parametrize("name", CONVS)
def test_wrapper_is_the_generic_formulation(name: str) -> None:
    torch.manual_seed(0)
    layer = LSPE(CONVS[name](12), CONVS[name](6), 6).double().train()
    h, p, e = random(GRAPHS.num_nodes, 6), random(GRAPHS.num_nodes, 6) * 2, random(GRAPHS.edge_index.size(1), 4)
    edges = (e,) if name in ("gine", "gatv2", "transformer") else ()
    structure = layer.conv_h(torch.cat([h, p], dim=1), GRAPHS.edge_index, *edges)
    structure = (structure - structure.mean(0)) / torch.sqrt(structure.var(0, unbiased=False) + 1e-5)
    found_h, found_p, found_e = layer(h, p, e, Topology.of(GRAPHS))
    torch.testing.assert_close(found_h, h + torch.relu(structure))
    torch.testing.assert_close(found_p, p + torch.tanh(layer.conv_p(p, GRAPHS.edge_index, *edges)))
    assert found_e is e


def test_wrapper_names_a_conv_of_the_wrong_width() -> None:
    layer = LSPE(GATv2Conv(12, 6, heads=2), GATv2Conv(6, 6), 6)
    h = torch.randn(GRAPHS.num_nodes, 6)
    with pytest.raises(ValueError, match="conv_h has to map 2·dim to dim"):
        layer(h, h, None, Topology.of(GRAPHS))


@pytest.mark.parametrize("kind", ["mean", "sum", "max"])
def test_readout(kind: str) -> None:
    x = random(GRAPHS.num_nodes, 5)
    torch.testing.assert_close(pool(x, Topology.of(GRAPHS), kind), scatter(x, GRAPHS.batch, reduce=kind))


def test_mean_and_sum_stand_side_by_side() -> None:
    x = random(GRAPHS.num_nodes, 5)
    mean, total = (scatter(x, GRAPHS.batch, reduce=kind) for kind in ("mean", "sum"))
    torch.testing.assert_close(pool(x, Topology.of(GRAPHS), "mean+sum"), torch.cat([mean, total / 20], dim=1))


def test_positional_loss_is_the_dense_formula() -> None:
    k, weight = 3, 0.7
    p = center_and_normalize(random(GRAPHS.num_nodes, k), GRAPHS.batch, 3).requires_grad_()
    expected = torch.zeros((), dtype=torch.float64)
    trace = torch.zeros((), dtype=torch.float64)
    for i in range(3):
        part, rows = GRAPHS[i], p[GRAPHS.batch == i]
        laplacian = to_dense_adj(
            *get_laplacian(part.edge_index, normalization="sym", num_nodes=part.num_nodes, dtype=p.dtype)[:1],
            edge_attr=get_laplacian(part.edge_index, normalization="sym", num_nodes=part.num_nodes, dtype=p.dtype)[1],
            max_num_nodes=part.num_nodes,
        )[0]
        gram = rows.T @ rows - torch.eye(k, dtype=p.dtype)
        trace = trace + torch.trace(rows.T @ laplacian @ rows)
        expected = expected + (torch.trace(rows.T @ laplacian @ rows) + weight * gram.square().sum()) / k / 3
    found = positional_loss(p, GRAPHS.edge_index, GRAPHS.batch, 3, weight=weight)
    torch.testing.assert_close(found, expected)
    (gradient,) = torch.autograd.grad(
        positional_loss(p, GRAPHS.edge_index, GRAPHS.batch, 3, weight=weight, scaling="released"), p
    )
    (without,) = torch.autograd.grad(trace / (k * 3 * GRAPHS.num_nodes), p)
    torch.testing.assert_close(gradient, without)
    with pytest.raises(ValueError, match="choose 'paper' or 'released'"):
        positional_loss(p, GRAPHS.edge_index, GRAPHS.batch, 3, weight=1.0, scaling="other")  # type: ignore[arg-type]


def test_centring_a_constant_leaves_zero() -> None:
    graph = Data(num_nodes=1)
    p = torch.full((1, 4), 3.0, requires_grad=True)
    out = center_and_normalize(p, torch.zeros(graph.num_nodes, dtype=torch.long), 1)
    out.sum().backward()
    assert not out.any()
    assert torch.isfinite(p.grad).all()


@pytest.mark.parametrize("edge_dim", [4, 6])
def test_edge_sum_is_sum_aggregation_of_the_edges(edge_dim: int) -> None:
    """Of edges as wide as nodes as they are; of others through a map."""
    layer = EdgeSum(edge_dim, 6).double()
    h, e = random(GRAPHS.num_nodes, 6), random(GRAPHS.num_edges, edge_dim)
    sums = SumAggregation()(e, GRAPHS.edge_index[1], dim_size=GRAPHS.num_nodes)
    h_new, p_new, e_new = layer(h, h, e, Topology.of(GRAPHS))
    torch.testing.assert_close(h_new, h + (sums if edge_dim == 6 else sums @ layer.W.weight.T))
    assert p_new is h
    assert e_new is e


def test_edge_sum_does_not_see_pairs_that_are_no_edges() -> None:
    """They are listed for full attention only; a node's edges are those of its graph."""
    star = CORNER_CASES["star"]
    layer = EdgeSum(4, 6)
    h, e = torch.randn(star.num_nodes, 6), torch.randn(star.num_edges, 4)
    added = torch.cat([star.edge_index, torch.tensor([[1], [2]])], dim=1)
    real = torch.arange(added.size(1)) < star.num_edges
    listed = Topology(added, star.num_nodes, real=real)
    with_added = torch.cat([e, torch.randn(1, 4)])
    torch.testing.assert_close(
        layer(h, None, with_added, listed)[0], layer(h, None, e, Topology(star.edge_index, star.num_nodes))[0]
    )
