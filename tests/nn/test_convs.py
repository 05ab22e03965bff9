"""Convs by name: made for their widths, called with what they take, or refused in words."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv, GINEConv

from lspe import testing
from lspe.errors import UserError
from lspe.nn import LSPE, Topology
from lspe.nn.convs import keeps_width, make_conv, make_convs, make_mlp
from lspe.nn.trial import try_layer
from tests.graphs import CORNER_CASES

D, EDGE = 8, 6
WORKING: dict[str, dict[str, Any]] = {
    "GCNConv": {},
    "GINConv": {},
    "GINEConv": {"train_eps": True},
    "GATConv": {"heads": 4},
    "GATv2Conv": {"heads": 2, "concat": False},
    "TransformerConv": {"heads": 2},
    "SAGEConv": {"aggr": "max"},
    "ChebConv": {"K": 2},
    "GatedGraphConv": {"num_layers": 2},
    "ResGatedGraphConv": {},
    "GENConv": {},
    "CGConv": {},
    "EdgeConv": {},
    "NNConv": {},
    "GeneralConv": {},
    "AntiSymmetricConv": {},
    "APPNP": {"K": 3, "alpha": 0.1},
    "GPSConv": {"conv": "GINEConv", "heads": 2, "norm": "layer_norm"},
    "DirGNNConv": {"conv": {"name": "GraphConv", "aggr": "mean"}},
}

STRANGERS = """
import torch
from torch import nn
from torch_geometric.nn import GCNConv, global_mean_pool


class WeightOnly(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.inner = GCNConv(in_channels, out_channels)

    def forward(self, x, edge_index, edge_weight=None):
        return self.inner(x, edge_index, edge_weight)


class WeightNeeded(WeightOnly):
    def forward(self, x, edge_index, edge_weight):
        return self.inner(x, edge_index, edge_weight)


class BatchNeeded(WeightOnly):
    def forward(self, x, edge_index, batch):
        x = self.inner(x, edge_index)
        return x - global_mean_pool(x, batch)[batch]


class ATuple(WeightOnly):
    def forward(self, x, edge_index):
        return self.inner(x, edge_index), None


class OtherOrder(WeightOnly):
    def forward(self, edge_index, x):
        return self.inner(x, edge_index)


class OtherNames(WeightOnly):
    def forward(self, edges, feat):
        return self.inner(feat, edges)


class TooWide(WeightOnly):
    def __init__(self, in_channels, out_channels):
        super().__init__(in_channels, 2 * out_channels)

    def forward(self, x, edge_index):
        return self.inner(x, edge_index)


def no_module(in_channels, out_channels):
    return 3


number = 3
"""


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "strangers.py").write_text(STRANGERS)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("strangers", None)


def graphs() -> list[Data]:
    torch.manual_seed(0)
    made = []
    for name in ("decalin", "star", "one node", "path"):
        graph = CORNER_CASES[name].clone()
        graph.h, graph.p = torch.randn(2, graph.num_nodes, D, dtype=torch.float64)
        graph.edge_attr = torch.randn(graph.num_edges, EDGE, dtype=torch.float64)
        made.append(graph)
    return made


def lspe_around(name: str, arguments: dict[str, Any], *, lspe: bool = True) -> LSPE:
    conv_h, conv_p, join = make_convs(name, D, EDGE, arguments, lspe=lspe)
    return LSPE(conv_h, conv_p, D, join=join, edge_update=make_mlp(2 * D + EDGE, EDGE))


def check(name: str, arguments: dict[str, Any], *, lspe: bool = True) -> None:
    """A layer around the conv has the properties of a layer, and every stream and weight counts."""
    torch.manual_seed(0)
    layer = lspe_around(name, arguments, lspe=lspe).double().eval()

    def apply(data: Data) -> Tensor:
        h, p, _ = layer(data.h, data.p if lspe else None, data.edge_attr, Topology.of(data))
        return torch.cat([h, p], dim=-1) if lspe else h

    testing.check_batch_equals_singles(apply, graphs(), tolerance=1e-9)
    testing.check_permutation_equivariance(apply, graphs()[0], tolerance=1e-9)
    testing.check_finite(apply, graphs()[0], layer)
    if lspe:
        data = graphs()[0]
        before = apply(data)
        data.p = data.p + torch.randn(data.p.shape)
        assert (apply(data)[:, :D] - before[:, :D]).abs().max() > 1e-6, "the structure has to see the positions"


@pytest.mark.parametrize("name", WORKING)
def test_convs_of_pyg_by_name(name: str) -> None:
    check(name, WORKING[name])


@pytest.mark.parametrize("name", ["GINEConv", "GPSConv"])
def test_without_positions(name: str) -> None:
    check(name, WORKING[name], lspe=False)


@pytest.mark.parametrize("name", ["GINEConv", "GATConv", "GENConv", "CGConv", "NNConv", "GeneralConv", "GPSConv"])
def test_features_of_edges_count_where_a_conv_takes_them(name: str) -> None:
    torch.manual_seed(0)
    layer = lspe_around(name, WORKING[name]).double().eval()
    data = graphs()[0]
    graph = Topology.of(data)
    before = layer(data.h, data.p, data.edge_attr, graph)
    after = layer(data.h, data.p, data.edge_attr + 1, graph)
    assert (after[1] - before[1]).abs().max() > 1e-6


def test_widths() -> None:
    conv = make_conv("GATv2Conv", 16, D, EDGE, {"heads": 4})
    assert isinstance(conv, GATv2Conv)
    assert (conv.in_channels, conv.out_channels, conv.heads, conv.edge_dim) == (16, 2, 4, EDGE)
    gps = make_conv("GPSConv", D, D, EDGE, {"conv": {"name": "GINEConv", "eps": 0.5}, "heads": 2})
    assert isinstance(gps.conv, GINEConv)
    assert (gps.channels, gps.heads, gps.conv.initial_eps) == (D, 2, 0.5)
    by_path = make_conv("torch_geometric.nn.conv.nn_conv:NNConv", D, D, EDGE, {})
    assert by_path.nn[0].in_features == EDGE
    assert keeps_width("GPSConv")
    assert not keeps_width("GINConv")


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize("name", ["WeightOnly", "BatchNeeded", "OtherOrder"])
def test_a_strangers_conv_works(name: str) -> None:
    check(f"strangers:{name}", {})


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize(
    "name, arguments, message",
    [
        ("strangers:WeightNeeded", {}, "WeightNeeded needs the argument 'edge_weight', which LSPE does not have: wrap"),
        ("strangers:ATuple", {}, "strangers:ATuple: ATuple gave a tuple, not one tensor: wrap it in a module that"),
        ("strangers:OtherNames", {}, "strangers:OtherNames fails on two small graphs"),
        ("strangers:TooWide", {}, r"TooWide gave \[5, 16\] for a stream of \[5, 8\]: conv_h has to map 2·dim to dim"),
        ("strangers:no_module", {}, "strangers:no_module gives a int, not a torch.nn.Module"),
        ("strangers:number", {}, "strangers:number is a int, not a class or a function that makes a conv"),
        ("strangers:Missing", {}, "has no 'Missing'"),
        ("nowhere:Conv", {}, "there is no module 'nowhere'"),
        ("GINEConf", {}, "PyTorch Geometric has no conv 'GINEConf': did you mean 'GINEConv'"),
        ("ChebConv", {}, "ChebConv needs 'K': add it to model.conv_args"),
        ("GINEConv", {"edge_dims": 3}, "GINEConv.*cannot be made.*edge_dims"),
        ("EGConv", {"num_heads": 3}, r"EGConv\(num_heads=3\) cannot be made"),
        ("GATConv", {"heads": 3}, "model.conv_args.heads: 3 heads of GATConv cannot share a width of 8 evenly"),
        ("strangers:WeightOnly", {"depth": 3}, "model.conv_args: strangers:WeightOnly takes no 'depth'; it takes in_c"),
        ("GCN2Conv", {"alpha": 0.1}, "needs the argument 'x_0'"),
        ("RGCNConv", {"num_relations": 2}, "RGCNConv fails on two small graphs"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        try_layer(lspe_around(name, arguments), name, dim=D, edge_dim=EDGE, lspe=True)


def test_a_trial_leaves_no_trace() -> None:
    layer = lspe_around("GPSConv", {"conv": "GINEConv", "heads": 2, "dropout": 0.5})
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    state = torch.get_rng_state()
    try_layer(layer, "GPSConv", dim=D, edge_dim=EDGE, lspe=True)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert layer.training


def test_every_conv_of_pyg_works_or_is_refused_in_words() -> None:
    """None of them ends in an error that is not meant for the user."""
    from torch_geometric.nn import conv

    refused = {}
    for name in conv.__all__:
        try:
            try_layer(lspe_around(name, WORKING.get(name, {})), name, dim=D, edge_dim=EDGE, lspe=True)
        except UserError as error:
            refused[name] = str(error)
    assert len(conv.__all__) - len(refused) >= len(WORKING) + 10
    assert all(name.removeprefix("Fast") in message for name, message in refused.items())
