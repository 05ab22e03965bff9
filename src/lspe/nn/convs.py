"""Convs of PyTorch Geometric by their name, or one's own by their import path, made for given widths."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from torch import nn

from lspe.errors import UserError
from lspe.own_parts import import_part, make_part

_EDGE_WIDTHS = ("edge_dim", "in_edge_channels")
"""Names under which convs are told the width of the features of edges."""


def find_conv(name: str) -> Callable[..., nn.Module]:
    """The conv that ``GINEConv`` (of PyG) or ``my_module:MyConv`` names."""
    conv: Callable[..., nn.Module]
    if ":" in name:
        conv = import_part(name)
        if not callable(conv):
            raise UserError(f"{name} is a {type(conv).__name__}, not a class or a function that makes a conv")
        return conv
    from torch_geometric.nn import conv as of_pyg  # takes long to load

    if name not in of_pyg.__all__:
        close = get_close_matches(name, of_pyg.__all__, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "name one of torch_geometric.nn.conv, or my_module:MyConv"
        raise UserError(f"PyTorch Geometric has no conv {name!r}: {hint}")
    conv = getattr(of_pyg, name)
    return conv


def keeps_width(name: str) -> bool:
    """Whether a conv has one width for what it takes and gives, such as ``GPSConv``."""
    takes = inspect.signature(find_conv(name)).parameters
    return "nn" not in takes and not {"in_channels", "out_channels"} <= takes.keys()


def make_conv(
    name: str, in_dim: int, out_dim: int, edge_dim: int, arguments: Mapping[str, Any], place: str = "conv_args"
) -> nn.Module:
    """A conv ``in_dim`` → ``out_dim`` with fresh weights.

    Its widths are filled in under the names by which it takes them, an MLP where it takes one as ``nn`` (as ``GINConv``
    does), and a conv inside it (as ``GPSConv`` has) where it is named.

    Args:
        name: of PyG's ``GINEConv``, …, or ``my_module:MyConv``.
        in_dim: width of what it takes.
        out_dim: width of what it gives; heads that are concatenated share it.
        edge_dim: width of the features of edges.
        arguments: all others of its own, ``{"heads": 4}``.
        place: where in a configuration these are written.

    """
    conv, arguments = find_conv(name), dict(arguments)
    inside = arguments.get("conv")
    if isinstance(inside, str):
        inside = {"name": inside}
    if isinstance(inside, Mapping):
        others = {key: value for key, value in inside.items() if key != "name"}
        arguments["conv"] = make_conv(str(inside.get("name")), in_dim, out_dim, edge_dim, others, f"{place}.conv")
    known: dict[str, Any] = {
        "in_channels": in_dim,
        "out_channels": _width_of_a_head(conv, name, out_dim, arguments, place),
        "channels": out_dim,
        "nn": _mlp_inside(conv, in_dim, out_dim, edge_dim),
        **dict.fromkeys(_EDGE_WIDTHS, edge_dim),
    }
    if _is_of_pyg(conv, "CGConv"):
        known["dim"] = edge_dim
    made = make_part(conv, name, known, arguments, place)
    if not isinstance(made, nn.Module):
        raise UserError(f"{name} gives a {type(made).__name__}, not a torch.nn.Module")
    return made


class Convs(NamedTuple):
    """The two convs of a layer, and what joins [h, p] where the first keeps its width."""

    conv_h: nn.Module
    conv_p: nn.Module | None
    join: nn.Module | None


def make_convs(name: str, dim: int, edge_dim: int, arguments: Mapping[str, Any], *, lspe: bool) -> Convs:
    """The convs of that name for structure and positions of width ``dim``; without positions the first alone."""
    narrow, place = keeps_width(name), "model.conv_args"
    return Convs(
        make_conv(name, 2 * dim if lspe and not narrow else dim, dim, edge_dim, arguments, place),
        make_conv(name, dim, dim, edge_dim, arguments, place) if lspe else None,
        nn.Linear(2 * dim, dim) if lspe and narrow else None,
    )


def make_mlp(in_dim: int, out_dim: int) -> nn.Module:
    """Two linear maps with ReLU between them."""
    return nn.Sequential(nn.Linear(in_dim, out_dim), nn.ReLU(), nn.Linear(out_dim, out_dim))


def _width_of_a_head(
    conv: Callable[..., nn.Module], name: str, width: int, arguments: Mapping[str, Any], place: str
) -> int:
    takes = inspect.signature(conv).parameters
    heads = arguments.get("heads", takes["heads"].default if "heads" in takes else 1)
    concatenated = "concat" in takes and arguments.get("concat", takes["concat"].default)
    if not concatenated or not isinstance(heads, int) or heads < 1:
        return width
    if width % heads:
        raise UserError(f"{place}.heads: {heads} heads of {name} cannot share a width of {width} evenly")
    return width // heads


def _mlp_inside(conv: Callable[..., nn.Module], in_dim: int, out_dim: int, edge_dim: int) -> nn.Module:
    """What a conv takes as ``nn``; a map of nodes unless it is known to be one of pairs or of edges."""
    if _is_of_pyg(conv, "NNConv"):
        return make_mlp(edge_dim, in_dim * out_dim)
    return make_mlp(2 * in_dim if _is_of_pyg(conv, "EdgeConv") else in_dim, out_dim)


def _is_of_pyg(conv: Callable[..., nn.Module], name: str) -> bool:
    return conv.__module__.startswith("torch_geometric.") and getattr(conv, "__name__", "") == name
