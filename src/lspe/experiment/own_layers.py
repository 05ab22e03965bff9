"""Networks whose layers come from elsewhere, as values: LSPE around any conv, and layers of one's own."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from torch import nn

from lspe.errors import UserError
from lspe.experiment.network_base import NetworkConfig
from lspe.features import Positive
from lspe.nn.convs import find_conv, make_convs, make_mlp
from lspe.nn.gps import GPS
from lspe.nn.trial import try_layer
from lspe.nn.wrap import LSPE
from lspe.own_parts import import_part, make_part, path_of


def _conv_path(conv: Any) -> Any:
    """Classes are written down as what names them: those of PyG by name, others by import path."""
    if isinstance(conv, type):
        conv = path_of(conv)
    if isinstance(conv, str):
        if conv.startswith("torch_geometric.nn.conv."):
            conv = conv.rpartition(":")[2]
        find_conv(conv)
    return conv


def _layer_path(layer: Any) -> Any:
    if isinstance(layer, type):
        layer = path_of(layer)
    if isinstance(layer, str):
        import_part(layer)
    return layer


class LSPEConfig(NetworkConfig):
    """LSPE around a conv of PyG, ``GINEConv``, or one's own, ``my_module:MyConv``, with ``conv_args`` as its arguments.

    ``update_edges``: e learns too, through an MLP of [h_i, h_j, e_ij].
    """

    name: Literal["lspe"]
    conv: Annotated[str, BeforeValidator(_conv_path)]
    conv_args: dict[str, Any] = Field(default_factory=dict)
    update_edges: bool = False

    def build_layers(self) -> list[nn.Module]:
        layers: list[nn.Module] = []
        for _ in range(self.layers):
            conv_h, conv_p, join = make_convs(
                self.conv, self.hidden_dim, self.edge_width, self.conv_args, lspe=self.lspe
            )
            update = make_mlp(2 * self.hidden_dim + self.edge_width, self.edge_width) if self.update_edges else None
            options: dict[str, Any] = {"dropout": self.drops, "residual": self.residual}
            layers.append(LSPE(conv_h, conv_p, self.hidden_dim, join=join, edge_update=update, **options))
        try_layer(layers[0], self.conv, dim=self.hidden_dim, edge_dim=self.edge_width, lspe=self.lspe)
        return layers


class GPSConfig(NetworkConfig):
    """GPS around a conv, as :class:`LSPEConfig` names it, with so many ``heads`` of attention over all nodes."""

    name: Literal["gps"]
    conv: Annotated[str, BeforeValidator(_conv_path)] = "GINEConv"
    conv_args: dict[str, Any] = Field(default_factory=dict)
    heads: Positive = 4

    def build_layers(self) -> list[nn.Module]:
        layers: list[nn.Module] = []
        for _ in range(self.layers):
            conv_h, conv_p, join = make_convs(
                self.conv, self.hidden_dim, self.edge_width, self.conv_args, lspe=self.lspe
            )
            options: dict[str, Any] = {"dropout": self.drops, "residual": self.residual}
            layers.append(GPS(conv_h, conv_p, self.hidden_dim, self.heads, join=join, **options))
        try_layer(layers[0], self.conv, dim=self.hidden_dim, edge_dim=self.edge_width, lspe=self.lspe)
        return layers


class OwnConfig(NetworkConfig):
    """Layers (h, p, e, topology) → (h, p, e) of one's own, ``my_module:MyLayer``, with ``layer_args`` as arguments.

    A layer is given what it takes by name of ``dim``, ``edge_dim``, ``lspe``, ``dropout`` and ``residual``.
    """

    name: Literal["own"]
    layer: Annotated[str, BeforeValidator(_layer_path)]
    layer_args: dict[str, Any] = Field(default_factory=dict)

    def build_layers(self) -> list[nn.Module]:
        part = import_part(self.layer)
        known = {
            "dim": self.hidden_dim,
            "edge_dim": self.edge_width,
            "lspe": self.lspe,
            "dropout": self.drops,
            "residual": self.residual,
        }
        layers = [make_part(part, self.layer, known, self.layer_args, "model.layer_args") for _ in range(self.layers)]
        if not isinstance(layers[0], nn.Module):
            raise UserError(f"{self.layer} gives a {type(layers[0]).__name__}, not a torch.nn.Module")
        try_layer(layers[0], self.layer, dim=self.hidden_dim, edge_dim=self.edge_width, lspe=self.lspe)
        return layers
