"""PNA layers with towers in C, as one operator where they follow each other; the equations: :class:`lspe.nn.TowerPNA`.

From the first layer to the last nodes stand in the order of their degrees (csrc/principal.h), and h and p side by side
in one row, of which the aggregation of p sees the second part.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lspe.ops.edges import Edges
from lspe.ops.fused.layout import empty_rows, padded_width, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.memory import Lease
from lspe.ops.fused.norm import Norm
from lspe.ops.fused.operator import Operator
from lspe.ops.fused.principal import AGGREGATORS

PER_STREAM = 6
"""Parameters of a layer: weight and bias of message, update and mix; then come those of the norm."""


class TowerLayer(NamedTuple):
    """What a layer is beside its parameters; ``seeds`` are those of the dropout of h and p."""

    residual: bool
    scaled: bool
    dropout: float
    seeds: Sequence[int]
    norm: Norm


class Messages(NamedTuple):
    """What all layers have in common: towers, aggregators, each scaler's factor for each node ``[N, S]``, who gets
    messages of whom, and which row of the table an edge has (``None``: its own).
    """

    towers: int
    aggregators: Sequence[str]
    scale: Tensor
    edges: Edges
    kind: Tensor | None


Twin = Callable[[Tensor, Tensor | None, Tensor], tuple[Tensor, Tensor | None]]


def tower_layers(
    h: Tensor,
    p: Tensor | None,
    table: Tensor,
    layers: Sequence[TowerLayer],
    parameters: Sequence[Tensor],
    messages: Messages,
    size_scale: Tensor | None,
    *,
    plain: Twin,
    again: Twin,
) -> tuple[Tensor, Tensor | None]:
    """``plain(h, p, table)``, in C; ``again`` is the same without a change of the running statistics.

    The parameters of each layer: weight and bias of the messages, the update and the mixing map of h, those of p, then
    of the norm. ``size_scale`` ``[N, 1]`` is for layers that are scaled.
    """
    kept = len(layers) if torch.is_grad_enabled() else 2
    memory = Lease(kept, _memory(h, p, messages.towers), h.dtype)
    edges = messages.edges
    order = (edges.edge_index, *edges.by_target, *edges.by_source)
    arguments = (h, p, table, layers, memory, messages, size_scale, order)
    try:
        if p is None:
            (h_new,) = _layers_without_positions(
                *arguments,
                parameters=parameters,
                plain=lambda *x: again(*x[:3])[:1],
                instead=lambda *x: plain(*x[:3])[:1],
            )
            return h_new, None  # type: ignore[return-value]
        results = _layers(
            *arguments, parameters=parameters, plain=lambda *x: again(*x[:3]), instead=lambda *x: plain(*x[:3])
        )
        return tuple(results)  # type: ignore[return-value]
    finally:
        if not torch.is_grad_enabled():
            memory.give_back()


def _memory(h: Tensor, p: Tensor | None, towers: int) -> int:
    """Numbers for a layer (see ``tower_layers`` in csrc/api.h)."""
    (nodes, width), streams = h.shape, 1 if p is None else 2

    def of_towers(width: int) -> int:
        return padded_width((towers - 1) * width + padded_width(width))

    padded = of_towers(width // towers)
    row = max(of_towers(streams * width // towers), padded_width((streams - 1) * width + padded))
    return nodes * (row + 3 * streams * padded) + 3 * width


def _forward(
    h: Tensor,
    p: Tensor | None,
    table: Tensor,
    layers: Sequence[TowerLayer],
    memory: Lease,
    messages: Messages,
    size_scale: Tensor | None,
    order: Sequence[Tensor],
    *parameters: Tensor,
) -> list[Tensor]:
    new = [empty_rows(x, *x.shape) for x in (h, p) if x is not None]
    call = _common(h, p, table, layers, memory, messages, size_scale, order, parameters)
    call["in"] = [unit_rows(x) for x in (h, p) if x is not None]
    library_for(h).call("tower_layers_forward", out=new, **call)
    counters = [layer.norm.batches for layer in layers if layer.norm.of_rows and layer.norm.batches is not None]
    if counters:
        torch._foreach_add_(counters, 1)
    return new


def _common(
    h: Tensor,
    p: Tensor | None,
    table: Tensor,
    layers: Sequence[TowerLayer],
    memory: Lease,
    messages: Messages,
    size_scale: Tensor | None,
    order: Sequence[Tensor],
    parameters: Sequence[Tensor],
) -> dict[str, Any]:
    """What both directions take."""
    edge_index, in_start, in_edge, out_start, out_edge = order
    each, kept = len(parameters) // len(layers), memory.tensors()
    return {
        "threads": threads(),
        "count": len(layers),
        "memories": len(kept),
        "positions": p is not None,
        "towers": messages.towers,
        "kinds": torch.tensor([AGGREGATORS.index(name) for name in messages.aggregators]),
        "kind": messages.kind,
        "edges": {
            "nodes": h.size(0),
            "source": edge_index[0],
            "in_start": in_start,
            "in_edge": in_edge,
            "out_start": out_start,
            "out_edge": out_edge,
        },
        "table": unit_rows(table),
        "scale": unit_rows(messages.scale),
        "size_scale": size_scale,
        "memory": kept,
        "layer": [_layer(layer, parameters[n * each : (n + 1) * each]) for n, layer in enumerate(layers)],
    }


def _layer(layer: TowerLayer, parameters: Sequence[Tensor]) -> dict[str, Any]:
    streams = [parameters[first : first + PER_STREAM] for first in range(0, len(parameters) - 2, PER_STREAM)]
    return {
        "residual": layer.residual,
        "scaled": layer.scaled,
        "dropout": layer.dropout,
        "seed": layer.seeds,
        "message": [unit_rows(of[0].flatten(0, 1)) for of in streams],
        "message_bias": [of[1] for of in streams],
        "update": [unit_rows(of[2].flatten(0, 1)) for of in streams],
        "update_bias": [of[3] for of in streams],
        "mix": [unit_rows(of[4]) for of in streams],
        "mix_bias": [of[5] for of in streams],
        "norm": layer.norm.in_c(*parameters[-2:]),
    }


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    h, p, table, layers, memory, messages, size_scale, order, *parameters = arguments
    found = [empty_rows(x, *x.shape) for x in (h, p) if x is not None]
    of_table, of_parameters = table.new_empty(table.shape), h.new_empty(sum(x.numel() for x in parameters))
    library_for(h).call(
        "tower_layers_backward",
        out_gradient=[None if x is None else unit_rows(x) for x in gradients],
        in_gradient=found,
        table_gradient=of_table,
        parameters_gradient=of_parameters,
        **_common(h, p, table, layers, memory, messages, size_scale, order, parameters),
    )
    memory.give_back()
    of_h, of_p = (*found, None)[:2]
    return [of_h, of_p, of_table, *[None] * 5, of_parameters]


_layers = Operator(_forward, results=2, kept_from=2, gradient=_gradient)
_layers_without_positions = Operator(_forward, gradient=_gradient)
