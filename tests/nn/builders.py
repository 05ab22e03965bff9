"""Every kind of layer and network, small, for the property tests."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv, GCNConv, GINEConv, TransformerConv
from torch_geometric.transforms import Compose

from lspe.config import validate
from lspe.encodings import AddEncoding
from lspe.experiment import Preset, build_network
from lspe.nn import GPS, LSPE, PNA, SAN, GatedGCN, GraphiT, Network, Topology, TowerPNA

D = 8
EDGE = 8


def _mlp(width_in: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width_in, D), nn.Tanh(), nn.Linear(D, D))


LAYERS = {
    "gatedgcn": lambda: GatedGCN(D, size_norm=True),
    "gatedgcn-lspe": lambda: GatedGCN(D, lspe=True, size_norm=True),
    "pna": lambda: PNA(D, EDGE, delta=1.1),
    "pna-lspe": lambda: PNA(D, EDGE, delta=1.1, lspe=True),
    "pna-sum": lambda: PNA(D, EDGE, delta=1.1, lspe=True, aggregators=["mean", "sum", "max"], scalers=["identity"]),
    "tower-pna": lambda: TowerPNA(D, EDGE, delta=1.1, towers=2),
    "tower-pna-lspe": lambda: TowerPNA(D, EDGE, delta=1.1, towers=2, lspe=True),
    "san": lambda: SAN(D, 2),
    "san-lspe": lambda: SAN(D, 2, lspe=True),
    "graphit": lambda: GraphiT(D, 2),
    "graphit-lspe": lambda: GraphiT(D, 2, lspe=True),
    "gps": lambda: GPS(GINEConv(_mlp(D), edge_dim=EDGE), None, D, 2),
    "gps-lspe": lambda: GPS(GINEConv(_mlp(2 * D), edge_dim=EDGE), GINEConv(_mlp(D), edge_dim=EDGE), D, 2),
    "gps-lspe-join": lambda: GPS(GCNConv(D, D), GCNConv(D, D), D, 4, join=nn.Linear(2 * D, D)),
    "wrapped-gine": lambda: LSPE(
        GINEConv(_mlp(2 * D), edge_dim=EDGE), GINEConv(_mlp(D), edge_dim=EDGE), D, edge_update=_mlp(2 * D + EDGE)
    ),
    "wrapped-gatv2": lambda: LSPE(GATv2Conv(2 * D, D, edge_dim=EDGE), GATv2Conv(D, D, edge_dim=EDGE), D),
    "wrapped-transformer": lambda: LSPE(
        TransformerConv(2 * D, D // 2, heads=2, edge_dim=EDGE), TransformerConv(D, D, edge_dim=EDGE), D
    ),
    "wrapped-gcn": lambda: LSPE(GCNConv(2 * D, D), GCNConv(D, D), D),
}


def make_layer(name: str, seed: int = 0) -> nn.Module:
    """A float64 layer with parameters that are not small, so that a wrong term shows."""
    torch.manual_seed(seed)
    layer = LAYERS[name]().double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return layer


def with_inputs(graphs: Data, layer: nn.Module, seed: int = 0) -> Data:
    """A copy with random float64 h, p, e (``edge_attr``) for a layer."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    data = graphs.clone()
    data.h = random(int(graphs.num_nodes), D)
    if layer.lspe:
        data.p = random(int(graphs.num_nodes), D)
    data.edge_attr = random(graphs.edge_index.size(1), EDGE)
    return data


ADDED_PAIR = torch.linspace(-1, 1, EDGE, dtype=torch.float64)


def call(layer: nn.Module, data: Data) -> tuple[Tensor, Tensor | None, Tensor]:
    graph = Topology.of(data).with_added_pair(ADDED_PAIR)
    return layer(data.h, getattr(data, "p", None), data.edge_attr, graph)


def call_nodes(layer: nn.Module, data: Data) -> Tensor:
    """h and p beside each other, ``[N, 2d]`` or ``[N, d]``."""
    h, p, _ = call(layer, data)
    return h if p is None else torch.cat([h, p], dim=-1)


FEATURES = {
    "categorical": {"kind": "categorical", "node_types": 5, "edge_types": 4},
    "ogb": {"kind": "ogb"},
    "continuous": {"kind": "continuous", "node_features": 3, "edge_features": 2},
    "none": {"kind": "none"},
}

MODELS: dict[str, dict] = {
    "gatedgcn": {"name": "gatedgcn"},
    "gatedgcn-lappe": {"name": "gatedgcn", "encoding": "lappe", "k": 4},
    "gatedgcn-lspe-invariant": {"name": "gatedgcn", "lspe": True, "encoding": "lappe", "k": 4, "signs": "invariant"},
    "gatedgcn-rwpe-final": {
        "name": "gatedgcn",
        "encoding": "rwpe",
        "k": 5,
        "final": "structure+encoding",
        "normalize_positions": True,
    },
    "gatedgcn-lspe": {"name": "gatedgcn", "lspe": True, "size_norm": True},
    "gatedgcn-lspe-mean-and-sum": {"name": "gatedgcn", "lspe": True, "readout": "mean+sum"},
    "gatedgcn-lspe-h": {"name": "gatedgcn", "lspe": True, "final": "structure"},
    "pna-lspe": {"name": "pna", "lspe": True, "edge_dim": 3, "delta": 1.1, "readout": "sum"},
    "tower-pna-lspe": {"name": "pna", "lspe": True, "edge_dim": 3, "delta": 1.1, "towers": 2, "readout": "max"},
    "san-lspe": {"name": "san", "lspe": True, "heads": 2, "readout": "sum"},
    "graphit-lspe": {"name": "graphit", "lspe": True, "heads": 2, "readout": "none"},
    "gatedgcn-lspe-pre-norm": {"name": "gatedgcn", "lspe": True, "feed_forward": "pre-norm"},
    "gatedgcn-lspe-edge-sum": {"name": "gatedgcn", "lspe": True, "edge_sum": True},
    "san-lspe-post-norm": {"name": "san", "lspe": True, "heads": 2, "feed_forward": "post-norm", "edge_sum": True},
    "lspe-gine": {"name": "lspe", "lspe": True, "conv": "GINEConv", "update_edges": True},
    "gps": {"name": "gps", "heads": 2},
    "gps-lspe": {"name": "gps", "lspe": True, "heads": 2, "conv": "GATv2Conv", "conv_args": {"heads": 4}},
    "gatedgcn-lspe-normalized": {
        "name": "gatedgcn",
        "lspe": True,
        "pair_encoding": "rrwp",
        "pair_k": 6,
        "normalize_encoding": True,
    },
    "san-normalized": {
        "name": "san",
        "encoding": "lappe",
        "k": 4,
        "heads": 2,
        "pair_encoding": "rrwp",
        "pair_k": 6,
        "normalize_encoding": True,
    },
    "pna-rrwp": {"name": "pna", "edge_dim": 3, "delta": 1.1, "pair_encoding": "rrwp", "pair_k": 6},
    "san-lspe-rrwp": {"name": "san", "lspe": True, "heads": 2, "pair_encoding": "rrwp", "pair_k": 6},
    "graphit-lspe-resistance": {
        "name": "graphit",
        "lspe": True,
        "heads": 2,
        "pair_encoding": "resistance-pairs",
        "pair_k": 1,
    },
}


def make_network(model: str, features: str = "categorical", seed: int = 0, **changes: object) -> Network:
    """``changes``, of the model's settings."""
    torch.manual_seed(seed)
    options = dict(MODELS[model])
    if options.get("lspe"):
        defaults = {"encoding": "rwpe", "k": 5, "final": "structure+position", "normalize_positions": True}
        options = {**defaults, **options}
    values = {
        "name": "test",
        "dataset": "test",
        "task": {"kind": "regression", "outputs": 2, "metric": "mae"},
        "features": FEATURES[features],
        "model": {"layers": 2, "hidden_dim": 16, **options, **changes},
        "training": {},
    }
    network = build_network(validate(Preset, values, "test")).double()
    with torch.no_grad():  # no dead ReLU in the narrow head may hide a difference
        for linear in network.head.hidden:
            linear.bias.add_(1.0)
    return network


def with_features(graphs: Data, features: str = "categorical", seed: int = 0) -> Data:
    """A copy with random features of that kind and the encodings."""
    generator = torch.Generator().manual_seed(seed)
    n, m = int(graphs.num_nodes), graphs.edge_index.size(1)
    data = graphs.clone()
    if features == "categorical":
        data.x = torch.randint(0, 5, (n,), generator=generator)
        data.edge_attr = torch.randint(1, 4, (m,), generator=generator)
    elif features == "ogb":
        data.x = torch.randint(0, 2, (n, 9), generator=generator)
        data.edge_attr = torch.randint(0, 2, (m, 3), generator=generator)
    elif features == "continuous":
        data.x = torch.randn(n, 3, generator=generator)
        data.edge_attr = torch.randn(m, 2, generator=generator)
    transforms = (AddEncoding(*one) for one in (("rwpe", 5), ("lappe", 4), ("rrwp", 6), ("resistance-pairs", 1)))
    return Compose([*transforms])(data)
