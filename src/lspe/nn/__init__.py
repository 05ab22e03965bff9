"""The layers and networks of the paper."""

from lspe.nn.attention import PairAttention
from lspe.nn.blocks import run_in_blocks
from lspe.nn.edge_sum import EdgeSum
from lspe.nn.embed import (
    CategoricalEmbedder,
    ConstantEmbedder,
    ContinuousEmbedder,
    Embedder,
    MixedEmbedder,
    OGBEmbedder,
    embedder_for,
)
from lspe.nn.feed_forward import FeedForward
from lspe.nn.full_graph import FullGraphLayer
from lspe.nn.gated_gcn import GatedGCN
from lspe.nn.gps import GPS, GraphAttention
from lspe.nn.graphit import GraphiT
from lspe.nn.losses import positional_loss
from lspe.nn.network import Network, Output
from lspe.nn.norm import BatchNorm, center_and_normalize
from lspe.nn.pna import PNA, PrincipalAggregation
from lspe.nn.readout import Head, readout
from lspe.nn.san import SAN
from lspe.nn.signs import SignInvariantEmbedding
from lspe.nn.topology import Topology
from lspe.nn.tower_pna import TowerPNA
from lspe.nn.wrap import LSPE

__all__ = [
    "GPS",
    "LSPE",
    "PNA",
    "SAN",
    "BatchNorm",
    "CategoricalEmbedder",
    "ConstantEmbedder",
    "ContinuousEmbedder",
    "EdgeSum",
    "Embedder",
    "FeedForward",
    "FullGraphLayer",
    "GatedGCN",
    "GraphAttention",
    "GraphiT",
    "Head",
    "MixedEmbedder",
    "Network",
    "OGBEmbedder",
    "Output",
    "PairAttention",
    "PrincipalAggregation",
    "SignInvariantEmbedding",
    "Topology",
    "TowerPNA",
    "center_and_normalize",
    "embedder_for",
    "positional_loss",
    "readout",
    "run_in_blocks",
]
