"""Layers of full attention in C, those that follow each other as one operator.

:class:`lspe.nn.FullGraphLayer` has the equations. A batch is worked on in pieces of whole graphs: what the maps make
of a piece is still in the caches when the attention needs it. Features of edges that were looked up in a table are
mapped once per row of the table. Widths are padded inside.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lspe.ops.fused.layout import empty_rows, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.look_ups import looked_up
from lspe.ops.fused.memory import Lease
from lspe.ops.fused.norm import Norm
from lspe.ops.fused.operator import Operator
from lspe.ops.pairs import Pairs

Twin = Callable[[Tensor, Tensor | None, Tensor, Tensor, Tensor], tuple[Tensor, Tensor | None]]
"""From h, p, e, the embedding of added pairs and the numbers among the factors ``[layers, 2]`` to h and p."""


class Layer(NamedTuple):
    """What a layer is beside its parameters.

    ``seeds`` are those of the structure's attention, the hidden layer and the positions' attention; ``matrices`` the
    factors of edges and of added pairs, where they are none of the numbers.
    """

    residual: bool
    dropout: float
    seeds: Sequence[int]
    matrices: tuple[Tensor | None, Tensor | None]
    norms: tuple[Norm, Norm]


def full_layers(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    added_pair: Tensor,
    numbers: Tensor,
    layers: Sequence[Layer],
    parameters: Sequence[Tensor],
    pairs: Pairs,
    heads: int,
    *,
    plain: Twin,
    again: Twin,
) -> tuple[Tensor, Tensor | None]:
    """``plain(h, p, e, added_pair, numbers)``, in C; ``again`` is the same without a change of running statistics.

    The parameters of each layer: weights of Q, K, V, Q_added, K_added, E, E_added of the structure's attention and of
    the positions' one, of O, O_p, W1, W2, then the biases of the latter four, then weight and bias of both norms.
    """
    memory = None
    if torch.is_grad_enabled() or any(norm.of_rows for layer in layers for norm in layer.norms):
        sizes = (h.size(0), e.size(0), h.size(1), heads, p is not None)
        memory = Lease(len(layers), library_for(h).count("full_memory", *sizes), h.dtype)
    source = looked_up(e)
    rows, kind = (e, None) if source is None else (source.values, source.kind)
    order = (pairs.graph_start, pairs.edges.edge_index, *pairs.edges.by_target)
    arguments = (h, p, rows, added_pair, numbers, layers, memory, kind, order, heads)

    def of_rows(twin: Twin) -> Callable[..., Sequence[Tensor]]:
        def run(h: Tensor, p: Tensor | None, rows: Tensor, *others: Any) -> list[Tensor]:
            e = rows if kind is None else rows.index_select(0, kind)
            return [x for x in twin(h, p, e, *others[:2]) if x is not None]

        return run

    operator = _layers_without_positions if p is None else _layers
    try:
        found = operator(*arguments, parameters=parameters, plain=of_rows(again), instead=of_rows(plain))
    finally:
        if memory is not None and not torch.is_grad_enabled():
            memory.give_back()
    assert found[0] is not None
    return found[0], None if p is None else found[1]


def _forward(
    h: Tensor,
    p: Tensor | None,
    rows: Tensor,
    added_pair: Tensor,
    numbers: Tensor,
    layers: Sequence[Layer],
    memory: Lease | None,
    kind: Tensor | None,
    order: Sequence[Tensor],
    heads: int,
    *parameters: Tensor,
) -> list[Tensor]:
    streams = [h] if p is None else [h, p]
    new = [empty_rows(x, *x.shape) for x in streams]
    call = _common(h, rows, added_pair, numbers, layers, memory, kind, order, heads, parameters, p is not None)
    call["in"] = [unit_rows(x) for x in streams]
    library_for(h).call("full_layers_forward", out=new, **call)
    counters = [norm.batches for layer in layers for norm in layer.norms if norm.of_rows and norm.batches is not None]
    if counters:
        torch._foreach_add_(counters, 1)
    return new


def _common(
    h: Tensor,
    rows: Tensor,
    added_pair: Tensor,
    numbers: Tensor,
    layers: Sequence[Layer],
    memory: Lease | None,
    kind: Tensor | None,
    order: Sequence[Tensor],
    heads: int,
    parameters: Sequence[Tensor],
    positions: bool,
) -> dict[str, Any]:
    """What both directions take."""
    graph_start, edge_index, in_start, in_edge = order
    each = len(parameters) // len(layers)
    factors = numbers.tolist()
    return {
        "threads": threads(),
        "count": len(layers),
        "heads": heads,
        "positions": positions,
        "graph_start": graph_start,
        "kind": kind,
        "edges": {"nodes": h.size(0), "source": edge_index[0], "in_start": in_start, "in_edge": in_edge},
        "edge": unit_rows(rows),
        "added": added_pair.contiguous(),
        "memory": [] if memory is None else memory.tensors(),
        "layer": [
            _layer(layer, factors[n], parameters[n * each : (n + 1) * each], positions)
            for n, layer in enumerate(layers)
        ],
    }


def _layer(layer: Layer, factor: list[float], parameters: Sequence[Tensor], positions: bool) -> dict[str, Any]:
    maps: list[Tensor | None] = [unit_rows(weight) for weight in parameters[: 18 if positions else 10]]
    biases: list[Tensor | None] = list(parameters[len(maps) : -4])
    if not positions:
        maps[7:7] = [None] * 7
        maps.insert(15, None)
        biases.insert(1, None)
    norms = zip(layer.norms, (parameters[-4:-2], parameters[-2:]), strict=True)
    return {
        "residual": layer.residual,
        "dropout": layer.dropout,
        "seed": layer.seeds,
        "factor": factor,
        "factor_matrix": [None if x is None else x.flatten(0, 1).contiguous() for x in layer.matrices],
        "map": maps,
        "bias": biases,
        "norm": [norm.in_c(weight, bias) for norm, (weight, bias) in norms],
    }


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    h, p, rows, added_pair, numbers, layers, memory, kind, order, heads, *parameters = arguments
    found = [empty_rows(x, *x.shape) for x in (h, p) if x is not None]
    of_rows, of_added, of_numbers = (
        empty_rows(rows, *rows.shape),
        h.new_empty(added_pair.shape),
        torch.empty_like(numbers),
    )
    of_parameters = h.new_empty(sum(parameter.numel() for parameter in parameters))
    library_for(h).call(
        "full_layers_backward",
        out_gradient=[None if x is None else unit_rows(x) for x in gradients],
        in_gradient=found,
        edge_gradient=of_rows,
        added_gradient=of_added,
        factor_gradient=of_numbers.view(-1),
        parameters_gradient=of_parameters,
        **_common(h, rows, added_pair, numbers, layers, memory, kind, order, heads, parameters, p is not None),
    )
    memory.give_back()
    of_streams = [found[0], None if p is None else found[1]]
    of_inputs = [*of_streams, of_rows, of_added, of_numbers, *[None] * 5]
    return [*of_inputs, of_parameters]


_layers = Operator(_forward, results=2, kept_from=2, gradient=_gradient)
_layers_without_positions = Operator(_forward, results=1, kept_from=1, gradient=_gradient)
