"""PNA's aggregation in C; :class:`lspe.nn.PrincipalAggregation` has the equations.

Maps, aggregates and update are one pass over segments of nodes that have one degree. What scales the aggregates depends
on the degree alone, so that a segment has one map of the aggregates instead of one for each scaler. Each tower has
products of its own: side by side in one product they would be blocks on a diagonal, and most of it zeros.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.edges import Edges
from lspe.ops.fused.layout import empty_rows, padded_rows, padded_width, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator

AGGREGATORS = ("mean", "sum", "max", "min", "std")
"""In the order of ``enum`` in csrc/principal.h."""


def principal_aggregation(
    x: Tensor,
    values: Tensor,
    kind: Tensor | None,
    maps: Sequence[Tensor],
    scale: Tensor,
    edges: Edges,
    aggregators: Sequence[str],
    plain: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """``plain(x, at_edge)``, in C, where ``at_edge`` is ``values[kind]``, or ``values`` itself without ``kind``.

    The maps are weight and bias of the messages M, then of the update U, by towers.
    """

    def twin(x: Tensor, values: Tensor, kind: Tensor | None, *_: Tensor) -> tuple[Tensor]:
        return (plain(x, values if kind is None else values.index_select(0, kind)),)

    kinds = torch.tensor([AGGREGATORS.index(name) for name in aggregators])
    order = (edges.edge_index, *edges.by_target, *edges.by_source)
    (out,) = _aggregation(x, values, kind, *maps, scale, kinds, *order, plain=twin)
    assert out is not None
    return out


def _forward(
    x: Tensor,
    values: Tensor,
    kind: Tensor | None,
    message: Tensor,
    message_bias: Tensor,
    update: Tensor,
    update_bias: Tensor,
    scale: Tensor,
    kinds: Tensor,
    *order: Tensor,
) -> tuple[Tensor, Tensor]:
    """Beside the result, for the backward pass: what sources give their messages."""
    nodes, (towers, width, _) = x.size(0), message.shape
    sources = x.new_empty(nodes * padded_width((towers - 1) * width + padded_width(width)))
    out = empty_rows(x, nodes, towers * width)
    maps = (message, message_bias, update, update_bias)
    library_for(x).call("principal_forward", **_common(x, values, kind, maps, scale, kinds, order, sources), out=out)
    return out, sources


def _common(
    x: Tensor,
    values: Tensor,
    kind: Tensor | None,
    maps: Sequence[Tensor],
    scale: Tensor,
    kinds: Tensor,
    order: Sequence[Tensor],
    sources: Tensor,
) -> dict[str, Any]:
    """What both directions take."""
    message, message_bias, update, update_bias = maps
    edge_index, in_start, in_edge, out_start, out_edge = order
    return {
        "threads": threads(),
        "towers": message.size(0),
        "kinds": kinds,
        "kind": kind,
        "edges": {
            "nodes": x.size(0),
            "source": edge_index[0],
            "in_start": in_start,
            "in_edge": in_edge,
            "out_start": out_start,
            "out_edge": out_edge,
        },
        "x": unit_rows(x),
        "values": padded_rows(values),
        "scale": unit_rows(scale),
        "message": unit_rows(message.flatten(0, 1)),
        "message_bias": message_bias,
        "update": unit_rows(update.flatten(0, 1)),
        "update_bias": update_bias,
        "sources": sources,
    }


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    x, values, kind, message, message_bias, update, update_bias, scale, kinds, *order = arguments
    gradient = gradients[0]
    assert gradient is not None
    of_x, of_values = empty_rows(x, *x.shape), empty_rows(values, *values.shape)
    of_message, of_update = message.new_zeros(message.shape), update.new_empty(update.shape)
    of_biases = message_bias.new_empty(message_bias.shape), update_bias.new_empty(update_bias.shape)
    maps = (message, message_bias, update, update_bias)
    library_for(x).call(
        "principal_backward",
        **_common(x, values, kind, maps, scale, kinds, order, *kept),
        gradient=unit_rows(gradient),
        x_gradient=of_x,
        values_gradient=padded_rows(of_values),
        message_gradient=of_message.flatten(0, 1),
        message_bias_gradient=of_biases[0],
        update_gradient=of_update.flatten(0, 1),
        update_bias_gradient=of_biases[1],
    )
    return [of_x, of_values, None, of_message, of_biases[0], of_update, of_biases[1], *[None] * 7]


_aggregation = Operator(_forward, gradient=_gradient)
