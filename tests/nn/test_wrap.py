"""LSPE around layers of others: which arguments they get, and what is refused."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv, GCNConv, GINEConv, GPSConv

from lspe import ops, testing
from lspe.nn import LSPE, Topology
from tests.graphs import CORNER_CASES

D = 8


def _mlp(width_in: int, width_out: int = D) -> nn.Module:
    return nn.Sequential(nn.Linear(width_in, D), nn.Tanh(), nn.Linear(D, width_out))


def graphs() -> list[Data]:
    torch.manual_seed(0)
    made = []
    for name in ("decalin", "star", "one node", "path"):
        graph = CORNER_CASES[name].clone()
        graph.h, graph.p = torch.randn(2, graph.num_nodes, D)
        graph.edge_attr = torch.randn(graph.num_edges, D)
        made.append(graph)
    return made


def apply(layer: LSPE, data: Data) -> Tensor:
    return torch.cat(layer(data.h, data.p, data.edge_attr, Topology.of(data))[:2], dim=-1)


class Narrowing(nn.Module):
    """GPSConv, which keeps its width, and a map from 2d to d behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.gps = GPSConv(2 * D, GINEConv(_mlp(2 * D, 2 * D), edge_dim=D), heads=2)
        self.narrow = nn.Linear(2 * D, D)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        return self.narrow(self.gps(x, edge_index, batch, edge_attr=edge_attr))


def test_attention_inside_a_conv_stays_within_its_graph() -> None:
    """GPSConv attends over all nodes of a graph, and learns from ``batch`` which these are."""
    layer = LSPE(Narrowing(), GPSConv(D, GINEConv(_mlp(D), edge_dim=D), heads=2)).eval()
    assert layer.call_p.edge_name == "edge_attr"
    testing.check_batch_equals_singles(lambda data: apply(layer, data), graphs())


@pytest.mark.parametrize(
    "convs",
    [
        lambda: (GATv2Conv(2 * D, D, edge_dim=D), GATv2Conv(D, D, edge_dim=D)),
        lambda: (GINEConv(_mlp(2 * D), edge_dim=D), GINEConv(_mlp(D), edge_dim=D)),
        lambda: (GCNConv(2 * D, D), GCNConv(D, D)),
    ],
)
def test_the_width_is_found_out(convs: object) -> None:
    layer = LSPE(*convs())  # type: ignore[operator]
    assert layer.dim == D
    assert apply(layer, graphs()[0]).shape == (10, 2 * D)


class Named(nn.Module):
    """Another order of arguments, and another name for the features of the edges."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = GINEConv(_mlp(width), edge_dim=D)

    def forward(self, edge_index: Tensor, edge_features: Tensor, x: Tensor) -> Tensor:
        return self.inner(x, edge_index, edge_features)


def test_arguments_by_name() -> None:
    torch.manual_seed(0)
    usual = LSPE(GINEConv(_mlp(2 * D), edge_dim=D), GINEConv(_mlp(D), edge_dim=D)).eval()
    named = LSPE(Named(2 * D), Named(D)).eval()
    named.conv_h.inner, named.conv_p.inner = usual.conv_h, usual.conv_p
    data = graphs()[0]
    torch.testing.assert_close(apply(named, data), apply(usual, data))


class Demanding(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor, temperature: float) -> Tensor:
        return x


class Talkative(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="Demanding needs the argument 'temperature'"):
        LSPE(GCNConv(2 * D, D), Demanding(), D)
    with pytest.raises(ValueError, match="Talkative does not say how wide its input is: give LSPE its dim"):
        LSPE(GCNConv(2 * D, D), Talkative())
    with pytest.raises(TypeError, match="GCNConv takes no features of edges"):
        LSPE(GCNConv(2 * D, D), GCNConv(D, D), edge_features=True)
    layer = LSPE(GCNConv(2 * D, D), Talkative(), D)
    with pytest.raises(TypeError, match="Talkative gave a tuple, not one tensor"):
        apply(layer, graphs()[0])


def test_without_residual_nothing_old_is_added() -> None:
    layer = LSPE(GCNConv(2 * D, D), GCNConv(D, D), edge_update=_mlp(3 * D), residual=False).eval()
    data = graphs()[0]
    graph = Topology.of(data)
    _, p, e = layer(data.h, data.p, data.edge_attr, graph)
    torch.testing.assert_close(p, torch.tanh(layer.conv_p(data.p, data.edge_index)))
    ends = torch.cat([data.h[graph.target], data.h[graph.source], data.edge_attr], dim=-1)
    torch.testing.assert_close(e, layer.edge_update(ends))


def gine_gradients(layer: LSPE, data: Data) -> list[Tensor]:
    h, p, e = (x.double().requires_grad_() for x in (data.h, data.p, data.edge_attr))
    h_new, p_new, _ = layer(h, p, e, Topology.of(data))
    loss = (h_new * torch.arange(1.0, D + 1)).sum() + p_new.square().sum()
    return [h_new, p_new, *torch.autograd.grad(loss, [h, p, e, *layer.parameters()], allow_unused=True)]


@pytest.mark.parametrize("train_eps", [False, True])
@pytest.mark.parametrize("number", range(4))
def test_gine_is_that_of_pyg(number: int, train_eps: bool) -> None:
    torch.manual_seed(1)
    convs = [GINEConv(_mlp(width), edge_dim=D, eps=0.3, train_eps=train_eps) for width in (2 * D, D)]
    layer = LSPE(*convs, edge_update=_mlp(3 * D)).double().eval()
    data = graphs()[number]
    ours = gine_gradients(layer, data)
    with ops.use("plain"):
        theirs = gine_gradients(layer, data)
    for found, expected in zip(ours, theirs, strict=True):
        if expected is not None:
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_gine_can_be_differentiated_twice() -> None:
    torch.manual_seed(1)
    layer = LSPE(GINEConv(_mlp(2 * D), edge_dim=D), GINEConv(_mlp(D), edge_dim=D)).double().eval()
    data = graphs()[1]
    graph = Topology.of(data)
    streams = [x.double().requires_grad_() for x in (data.h, data.p, data.edge_attr)]
    assert torch.autograd.gradgradcheck(lambda *x: layer(*x, graph)[:2], streams)


class Doubling(GINEConv):
    def message(self, x_j: Tensor, edge_attr: Tensor) -> Tensor:
        return 2 * super().message(x_j, edge_attr)


def test_a_changed_or_watched_gine_is_left_alone() -> None:
    torch.manual_seed(1)
    data = graphs()[0]
    graph, e = Topology.of(data), data.edge_attr
    seen: list[str] = []
    watched = GINEConv(_mlp(D), edge_dim=D)
    watched.register_message_forward_hook(lambda *_: seen.append("message"))
    for conv in (Doubling(_mlp(D), edge_dim=D), GINEConv(_mlp(D), edge_dim=D, aggr="mean"), watched):
        layer = LSPE(GINEConv(_mlp(2 * D), edge_dim=D), conv).eval()
        expected = data.p + torch.tanh(conv(data.p, data.edge_index, e))
        torch.testing.assert_close(layer(data.h, data.p, e, graph)[1], expected)
    assert len(seen) == 2
