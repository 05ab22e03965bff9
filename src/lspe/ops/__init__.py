"""Operators that the layers are made of."""

from lspe.ops.gate import gated_aggregate
from lspe.ops.principal import AGGREGATORS, principal_aggregate
from lspe.ops.scatter import scatter_max, scatter_min, scatter_sum

__all__ = [
    "AGGREGATORS",
    "gated_aggregate",
    "principal_aggregate",
    "scatter_max",
    "scatter_min",
    "scatter_sum",
]
