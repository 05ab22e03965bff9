"""What a network is made of, as a value; :func:`build` makes it."""

from typing import Annotated, Any, Literal, get_args

import torch
from pydantic import Field, ValidationInfo, field_validator
from torch import nn

from lspe.config import unknown_name
from lspe.data.words import DESCRIPTOR_WIDTH
from lspe.experiment.given import GivenConfig
from lspe.experiment.network_base import NetworkConfig
from lspe.experiment.own_layers import GPSConfig, LSPEConfig, OwnConfig
from lspe.features import Features, Positive
from lspe.nn.descriptors import DescriptorInput
from lspe.nn.edge_sum import EdgeSum
from lspe.nn.embed import embedder_for
from lspe.nn.feed_forward import FeedForward
from lspe.nn.gated_gcn import Drop, GatedGCN
from lspe.nn.graphit import GraphiT
from lspe.nn.network import Network
from lspe.nn.normalisation import normalise_by
from lspe.nn.pna import ALL_AGGREGATORS, PNA, SCALERS
from lspe.nn.readout import Head, width_of
from lspe.nn.san import SAN
from lspe.nn.tower_pna import TowerPNA
from lspe.ops.fused.principal import AGGREGATORS


class GatedGCNConfig(NetworkConfig):
    name: Literal["gatedgcn"]
    size_norm: bool = False
    drop: Drop = "stream"

    def build_layers(self) -> list[nn.Module]:
        return [
            GatedGCN(
                self.hidden_dim,
                lspe=self.lspe,
                dropout=self.drops,
                drop=self.drop,
                size_norm=self.size_norm,
                residual=self.residual,
            )
            for _ in range(self.layers)
        ]


class PNAConfig(NetworkConfig):
    """``delta`` is the mean of log(in-degree + 1) over the training set; ``null``: to be taken from it."""

    name: Literal["pna"]
    edge_dim: Positive
    size_norm: bool = True
    towers: Positive | None = None
    delta: Annotated[float, Field(gt=0)] | None = None
    aggregators: Annotated[tuple[str, ...], Field(min_length=1)] = ALL_AGGREGATORS
    scalers: Annotated[tuple[str, ...], Field(min_length=1)] = SCALERS

    @field_validator("aggregators", "scalers")
    @classmethod
    def _names_exist(cls, names: tuple[str, ...], field: ValidationInfo) -> tuple[str, ...]:
        known = AGGREGATORS if field.field_name == "aggregators" else SCALERS
        for name in names:
            if name not in known:
                raise ValueError(unknown_name("name", name, known))
        return names

    @property
    def edge_width(self) -> int:
        return self.edge_dim

    @property
    def needs_delta(self) -> bool:
        return self.delta is None and any(scaler != "identity" for scaler in self.scalers)

    def build_layers(self) -> list[nn.Module]:
        if self.needs_delta:
            raise ValueError("model.delta is not given: set it to the mean of log(in-degree + 1) over the training set")
        options: dict[str, Any] = {
            "delta": self.delta or 1.0,
            "lspe": self.lspe,
            "dropout": self.drops,
            "size_norm": self.size_norm,
            "residual": self.residual,
            "aggregators": self.aggregators,
            "scalers": self.scalers,
        }
        if self.towers is None:
            return [PNA(self.hidden_dim, self.edge_dim, **options) for _ in range(self.layers)]
        return [TowerPNA(self.hidden_dim, self.edge_dim, towers=self.towers, **options) for _ in range(self.layers)]


class SANConfig(NetworkConfig):
    name: Literal["san"]
    heads: Positive = 8
    gamma: Annotated[float, Field(ge=0, le=1)] = 0.1

    def build_layers(self) -> list[nn.Module]:
        gamma = nn.Parameter(torch.tensor([self.gamma]))
        options: dict[str, Any] = {"lspe": self.lspe, "dropout": self.drops, "residual": self.residual}
        return [SAN(self.hidden_dim, self.heads, gamma=gamma, **options) for _ in range(self.layers)]


class GraphiTConfig(NetworkConfig):
    name: Literal["graphit"]
    heads: Positive = 8
    beta: Annotated[float, Field(gt=0, le=1)] = 0.25
    steps: Positive = 16

    def build_layers(self) -> list[nn.Module]:
        options: dict[str, Any] = {"lspe": self.lspe, "dropout": self.drops, "residual": self.residual}
        return [
            GraphiT(self.hidden_dim, self.heads, beta=self.beta, steps=self.steps, **options)
            for _ in range(self.layers)
        ]


ModelConfig = Annotated[
    GatedGCNConfig | PNAConfig | SANConfig | GraphiTConfig | LSPEConfig | GPSConfig | OwnConfig | GivenConfig,
    Field(discriminator="name"),
]
NETWORKS: tuple[type[NetworkConfig], ...] = get_args(get_args(ModelConfig)[0])
"""What a network can be."""


def _with_feed_forward(model: NetworkConfig, layers: list[nn.Module]) -> list[nn.Module]:
    """A feed-forward block behind each layer, where the network has them."""
    if model.feed_forward == "none":
        return layers
    blocks = (FeedForward(model.hidden_dim, model.feed_forward, dropout=model.drops) for _ in layers)
    return [one for layer, block in zip(layers, blocks, strict=True) for one in (layer, block)]


def _layers(model: NetworkConfig) -> list[nn.Module]:
    first = [EdgeSum(model.edge_width, model.hidden_dim)] if model.edge_sum else []
    layers = nn.ModuleList([*first, *_with_feed_forward(model, model.build_layers())])
    normalise_by(model.norm, layers)
    return list(layers)


def build(model: ModelConfig, features: Features, outputs: int) -> Network:
    """The network of a configuration, with fresh weights."""
    width = model.extra + (0 if model.beside == "none" else DESCRIPTOR_WIDTH[model.beside])
    beside = DescriptorInput(width, model.hidden_dim, dropout=model.drops) if width else None
    head_dim = width_of(model.readout, model.hidden_dim, model.edge_width) + (0 if beside is None else model.hidden_dim)
    head_drops = model.head_dropout or 0.0
    return Network(
        embedder_for(features, model.hidden_dim, model.edge_width),
        _layers(model),
        Head(head_dim, outputs, hidden=model.head_layers, dropout=head_drops),
        dim=model.hidden_dim,
        encoding=model.encoding,
        k=model.k,
        signs=model.signs,
        pair_encoding=model.pair_encoding,
        pair_k=model.pair_k,
        normalize_encoding=model.normalize_encoding,
        edge_dim=model.edge_width,
        lspe=model.lspe,
        final=model.final,
        readout=model.readout,
        normalize_positions=model.normalize_positions,
        position_epsilon=model.position_epsilon,
        dropout=head_drops,
        descriptors=beside,
    )
