"""GINE's sum of messages in C, without a copy of every edge's message."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.edges import Edges
from lspe.ops.fused.layout import unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator
from lspe.ops.scatter import scatter_sum

_GROUPS = 8
"""Of nodes, which do not depend on the number of threads; each sums the gradients of the values for itself."""


def relu_sum(x: Tensor, values: Tensor, kind: Tensor | None, own: Tensor, edges: Edges) -> Tensor:
    r"""``[N, d]``: :math:`s x_i + \sum_{j \in \mathcal{N}_i} \mathrm{ReLU}(x_j + c_{ij})`.

    Shapes:
        x ``[N, d]``, c ``values[kind]`` with values ``[T, d]``, kind ``[E]``, or values ``[E, d]`` where kind is
        ``None``; ``own`` s, one number.

    """
    order = (edges.edge_index, *edges.by_target, *edges.by_source)
    (out,) = _relu_sum(x, values, own, kind, *order, plain=_plain)
    assert out is not None
    return out


def _plain(
    x: Tensor, values: Tensor, own: Tensor, kind: Tensor | None, edge_index: Tensor, *_: Tensor
) -> tuple[Tensor]:
    source, target = edge_index
    c = values if kind is None else values.index_select(0, kind)
    return (own * x + scatter_sum(torch.relu(x.index_select(0, source) + c), target, x.size(0)),)


def _forward(x: Tensor, values: Tensor, own: Tensor, kind: Tensor | None, *order: Tensor) -> list[Tensor]:
    out = x.new_empty(x.shape)
    library_for(x).call("relu_sum_forward", **_messages(x, values, own, kind, *order), out=out)
    return [out]


def _messages(
    x: Tensor,
    values: Tensor,
    own: Tensor,
    kind: Tensor | None,
    edge_index: Tensor,
    in_start: Tensor,
    in_edge: Tensor,
    out_start: Tensor,
    out_edge: Tensor,
) -> dict[str, Any]:
    """What both directions take."""
    return {
        "threads": threads(),
        "edges": {
            "nodes": x.size(0), "source": edge_index[0], "target": edge_index[1],
            "in_start": in_start, "in_edge": in_edge, "out_start": out_start, "out_edge": out_edge,
        },
        "own": float(own),
        "x": unit_rows(x),
        "values": unit_rows(values),
        "kind": kind,
    }  # fmt: skip


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    x, values, own, kind, *_ = arguments
    (gradient,) = gradients
    assert gradient is not None
    x_gradient = x.new_empty(x.shape)
    values_gradient = values.new_empty((1 if kind is None else _GROUPS) * values.size(0), values.size(1))
    library_for(x).call(
        "relu_sum_backward",
        **_messages(*arguments),
        groups=_GROUPS,
        gradient=unit_rows(gradient),
        x_gradient=x_gradient,
        values_gradient=values_gradient,
    )
    if kind is not None:
        values_gradient = values_gradient.unflatten(0, (_GROUPS, -1)).sum(0)
    of_own = (gradient * x).sum().view(own.shape) if own.requires_grad else None
    return [x_gradient, values_gradient, of_own, *[None] * 6]


_relu_sum = Operator(_forward, gradient=_gradient)
