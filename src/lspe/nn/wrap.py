"""LSPE around any message-passing layer of PyTorch Geometric (section "Generic formulation" of the paper)."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from lspe.errors import UserError
from lspe.nn.gine import gine, is_fusible_gine
from lspe.nn.norm import BatchNorm
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.ops import dropout, tanh_residual

EDGE_ARGUMENTS = ("edge_attr", "edge_attrs", "edge_features", "edge_feature", "edge_feat", "e")
"""Names under which layers take the features of edges, ``[E, edge_dim]``."""

LOCAL_CONVS = frozenset(
    {
        *("GATConv", "GATv2Conv", "GINConv", "GINEConv", "GraphConv", "NNConv", "PNAConv", "ResGatedGraphConv"),
        *("SAGEConv", "TransformerConv"),
    }
)
"""PyG's layers that look at the edges into a node and their sources alone; GCNConv also asks for degrees of sources."""


class ConvError(UserError, TypeError):
    """A conv that cannot be called as one."""


class LSPE(nn.Module):
    r"""Learn positions beside the structure, with layers of your choice.

    .. math::
        h_i' &= h_i + \mathrm{ReLU}\Big(\mathrm{BN}\Big(f_h\Big(\begin{bmatrix} h_i \\ p_i \end{bmatrix},
            \Big\{\begin{bmatrix} h_j \\ p_j \end{bmatrix}\Big\}_{j \in \mathcal{N}_i}, e_{ij}\Big)\Big)\Big) \\
        p_i' &= p_i + \tanh(f_p(p_i, \{p_j\}_{j \in \mathcal{N}_i}, e_{ij})) \\
        e_{ij}' &= e_{ij} + f_e(h_i, h_j, e_{ij})

    A conv is called as ``f(x, edge_index)``, with the features of the edges (``edge_attr``, ``edge_features``, …) and
    with ``batch`` where it takes them. One that takes ``edge_weight`` only is called without. Without positions,
    ``conv_p=None``, f_h is a conv d → d and the second line is left out.

    Args:
        conv_h: f_h, a PyG conv 2d → d.
        conv_p: f_p, a PyG conv d → d, or ``None``.
        dim: d; found out from ``conv_p`` (without positions from ``conv_h``) where it says so.
        join: a module 2d → d applied to [h, p] first, for a ``conv_h`` that keeps the width d.
        edge_update: f_e, a module on ``[E, 2d + edge_dim]`` → ``[E, edge_dim]``; edges stay :math:`e^0` without.
        edge_features: whether the convs take features of edges; found out from each conv where it is ``None``.
        dropout: after the residual, on h and p.
        residual: add the input of each stream to its output.

    Shapes:
        h ``[N, d]``, p ``[N, d]`` (``None`` without ``conv_p``), e ``[E, edge_dim]`` (or ``None``) → the same.

    Example:
        >>> from torch_geometric.nn import GATv2Conv
        >>> layer = LSPE(GATv2Conv(128, 64, edge_dim=64), GATv2Conv(64, 64, edge_dim=64))

    """

    def __init__(
        self,
        conv_h: nn.Module,
        conv_p: nn.Module | None,
        dim: int | None = None,
        *,
        join: nn.Module | None = None,
        edge_update: nn.Module | None = None,
        edge_features: bool | None = None,
        dropout: float = 0.0,
        residual: bool = True,
    ) -> None:
        super().__init__()
        self.lspe = conv_p is not None
        self.dim = _input_width(conv_h if conv_p is None else conv_p) if dim is None else dim
        self.join = join
        self.conv_h = conv_h
        self.conv_p = conv_p
        self.call_h = Call(conv_h, edge_features)
        self.call_p = None if conv_p is None else Call(conv_p, edge_features)
        self.edge_update = edge_update
        self.norm_h = BatchNorm(self.dim)
        self.dropout = dropout
        self.residual = residual

    def forward(
        self, h: Tensor, p: Tensor | None, e: Tensor | None, graph: Topology
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        check_streams(h, p, e, graph, dim=self.dim, edge_dim=None, lspe=self.lspe)
        hp = h if p is None else torch.cat([h, p], dim=-1)
        h_new = self.call_h(self.conv_h, hp if self.join is None else self.join(hp), e, graph, like=h)
        h_new = self.norm_h(h_new, relu=True, residual=h if self.residual else None)
        if p is not None and self.conv_p is not None and self.call_p is not None:
            p_new = self.call_p(self.conv_p, p, e, graph, like=p)
            p = self._drop(tanh_residual(p_new, p if self.residual else None))
        if self.edge_update is not None and e is not None:
            ends = h.index_select(0, graph.target), h.index_select(0, graph.source)
            e_new = self.edge_update(torch.cat([*ends, e], dim=-1))
            e = e + e_new if self.residual else e_new
        return self._drop(h_new), p, e

    @property
    def is_local(self) -> bool:
        """Whether a node's result depends on the edges into it and their sources alone; one's own conv says so."""
        return all(getattr(conv, "is_local", type(conv).__name__ in LOCAL_CONVS) for conv in (self.conv_h, self.conv_p))

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class Call:
    """How a conv is called: which arguments it takes, and under which names.

    Args:
        conv: a module with ``forward(x, edge_index, ...)`` in any order.
        edge_features: whether it gets the features of the edges; if ``None``, where it has an argument for them and
            was built to use it.

    """

    def __init__(self, conv: nn.Module, edge_features: bool | None = None) -> None:
        self.name = type(conv).__name__
        parameters = inspect.signature(conv.forward).parameters
        self.by_name = {"x", "edge_index"} <= parameters.keys()
        self.edge_name = _edge_argument(conv)
        if edge_features is False or (edge_features is None and getattr(conv, "edge_dim", 0) is None):
            self.edge_name = None
        elif edge_features and self.edge_name is None:
            raise ConvError(f"{self.name} takes no features of edges: it has no argument {' or '.join(EDGE_ARGUMENTS)}")
        self.takes_batch = "batch" in parameters
        known = {*([*parameters][:2] if not self.by_name else ("x", "edge_index")), "batch", self.edge_name}
        for name, parameter in parameters.items():
            is_open = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if name not in known and parameter.default is parameter.empty and not is_open:
                raise ConvError(
                    f"{self.name} needs the argument {name!r}, which LSPE does not have: wrap it in a module whose "
                    "forward takes x and edge_index, and if it likes edge_attr and batch"
                )

    def __call__(self, conv: nn.Module, x: Tensor, e: Tensor | None, graph: Topology, like: Tensor) -> Tensor:
        """``conv`` of x, which has to give a stream like ``like``."""
        out = self._call(conv, x, e, graph)
        if not isinstance(out, Tensor):
            raise ConvError(
                f"{self.name} gave a {type(out).__name__}, not one tensor: wrap it in a module that picks it"
            )
        if out.shape != like.shape:
            raise ConvError(
                f"{self.name} gave {list(out.shape)} for a stream of {list(like.shape)}: "
                "conv_h has to map 2·dim to dim, conv_p dim to dim (mind concatenated heads)"
            )
        return out

    def _call(self, conv: nn.Module, x: Tensor, e: Tensor | None, graph: Topology) -> Any:
        if e is not None and self.edge_name is not None and is_fusible_gine(conv, x, e):
            return gine(conv, x, e, graph)
        others: dict[str, Any] = {}
        if self.edge_name is not None and e is not None:
            others[self.edge_name] = e
        if self.takes_batch:
            others["batch"] = graph.batch
        if self.by_name:
            return conv(x=x, edge_index=graph.edge_index, **others)
        return conv(x, graph.edge_index, **others)


def _edge_argument(conv: nn.Module) -> str | None:
    """The argument for features of edges; one that takes any (``**kwargs``) hands them on to a layer inside it."""
    parameters = inspect.signature(conv.forward).parameters
    for name in EDGE_ARGUMENTS:
        if name in parameters:
            return name
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        inside = getattr(conv, "conv", None)
        if isinstance(inside, nn.Module) and getattr(inside, "edge_dim", 0) is not None:
            return _edge_argument(inside)
    return None


def _input_width(conv: nn.Module) -> int:
    """The width of what a conv takes, as its attributes or its first linear map say."""
    for name in ("in_channels", "channels"):
        value = getattr(conv, name, None)
        width = value[0] if isinstance(value, tuple) else value
        if isinstance(width, int) and width > 0:
            return width
    for module in conv.modules():
        if isinstance(module, nn.Linear):
            return module.in_features
    raise ValueError(f"{type(conv).__name__} does not say how wide its input is: give LSPE its dim")
