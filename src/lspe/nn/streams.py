"""The three streams of a layer, h, p and e, looked at before anything is computed with them."""

import torch
from torch import Tensor

from lspe.nn.topology import Topology


def check_streams(
    h: Tensor, p: Tensor | None, e: Tensor | None, graph: Topology, *, dim: int, edge_dim: int | None, lspe: bool
) -> None:
    """Refuse streams that do not fit the graph or the layer, in the same words whatever computes it.

    Args:
        h: ``[N, dim]``.
        p: ``[N, dim]``, or ``None`` where ``lspe`` is off.
        e: ``[E, edge_dim]``; of any width, or ``None``, where ``edge_dim`` is ``None``.
        graph: of N nodes and E edges.
        dim: width of h and p.
        edge_dim: width of e.
        lspe: whether the layer learns positions.

    """
    if not isinstance(graph, Topology):
        raise TypeError(f"a layer takes (h, p, e, topology), and topology is a {type(graph).__name__}")
    if lspe != (p is not None):
        missing = "p is None, but the layer learns positions" if lspe else "p was given to a layer without lspe"
        raise ValueError(f"{missing}: build the layer with lspe={not lspe}, or {'give' if lspe else 'leave out'} p")
    _check("h", h, graph.num_nodes, "nodes", dim)
    if h.device != graph.edge_index.device:
        raise ValueError(f"h is on {h.device} and the graph on {graph.edge_index.device}: put both on one device")
    if p is not None:
        _check("p", p, graph.num_nodes, "nodes", dim)
        _check_alike("p", p, h)
    if e is None and edge_dim is not None:
        raise ValueError("e is None, but the layer takes edge features")
    if e is not None:
        _check("e", e, graph.edges.count, "edges", edge_dim)
        _check_alike("e", e, h)


def _check(name: str, x: Tensor, rows: int, of_what: str, width: int | None) -> None:
    if x.dim() != 2:
        raise ValueError(f"{name} is {list(x.shape)}, but a stream has the shape [{of_what}, width]")
    if x.size(0) != rows:
        hint = " (were edges added or dropped without their features?)" if of_what == "edges" else ""
        raise ValueError(f"{name} has {x.size(0)} rows, but the graph has {rows} {of_what}{hint}")
    if width is not None and x.size(1) != width:
        raise ValueError(f"{name} is {x.size(1)} wide, but the layer takes {width}")
    if not x.is_floating_point():
        raise TypeError(f"{name} is of {x.dtype}, but streams are real numbers: embed it first")


def _check_alike(name: str, x: Tensor, h: Tensor) -> None:
    if x.dtype is not h.dtype and not torch.is_autocast_enabled(h.device.type):
        raise TypeError(f"{name} is of {x.dtype} and h of {h.dtype}: give all streams in one precision")
    if x.device != h.device:
        raise ValueError(f"{name} is on {x.device} and h on {h.device}: put all streams on one device")
