"""Operators that the layers are made of: fused ones in C for the CPU, each beside its plain PyTorch twin."""

from lspe.ops.attention import PairMaps, pair_attention
from lspe.ops.choice import fusible, status, use
from lspe.ops.edges import Edges
from lspe.ops.fused.dropout import dropout
from lspe.ops.fused.norm import batch_norm
from lspe.ops.fused.tanh import tanh_residual
from lspe.ops.fused.walks import return_probabilities
from lspe.ops.gate import GateMaps, gated_aggregate, gated_convolution
from lspe.ops.pairs import Pairs
from lspe.ops.principal import AGGREGATORS, TowerMaps, principal_aggregate, principal_aggregation
from lspe.ops.scatter import scatter_max, scatter_min, scatter_sum

__all__ = [
    "AGGREGATORS",
    "Edges",
    "GateMaps",
    "PairMaps",
    "Pairs",
    "TowerMaps",
    "batch_norm",
    "dropout",
    "fusible",
    "gated_aggregate",
    "gated_convolution",
    "pair_attention",
    "principal_aggregate",
    "principal_aggregation",
    "return_probabilities",
    "scatter_max",
    "scatter_min",
    "scatter_sum",
    "status",
    "tanh_residual",
    "use",
]
