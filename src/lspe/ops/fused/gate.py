"""GatedGCN layers in C, those that follow each other as one operator; :class:`lspe.nn.GatedGCN` has the equations.

The maps of h are one product of matrices and those of p another; rows are padded inside, because such products are slow
at odd widths. Gates, their normalisation and both sums are one pass over the edges. A batch is worked on in pieces
of some hundred nodes: what the maps make of a piece is still in the caches when the gates need it, and only what the
backward pass cannot do without is kept. Where no gradient is wanted and the normalisations go by their running
statistics, a piece goes through all layers at once.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lspe.ops.edges import Edges
from lspe.ops.fused.layout import empty_rows, padded_width, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.look_ups import looked_up
from lspe.ops.fused.memory import Lease
from lspe.ops.fused.norm import Norm
from lspe.ops.fused.operator import Operator

Streams = tuple[Tensor, Tensor | None, Tensor]


class Layer(NamedTuple):
    """What a layer is beside its parameters; ``seeds`` and ``norms`` are those of h, e (and p).

    Dropout is behind the residual or, with ``drop_branch``, of what is added to it.
    """

    residual: bool
    scaled: bool
    drop_branch: bool
    dropout: float
    seeds: Sequence[int]
    norms: tuple[Norm, Norm]


def gated_layers(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    layers: Sequence[Layer],
    parameters: Sequence[Tensor],
    edges: Edges,
    scale: Tensor | None,
    *,
    plain: Callable[[Tensor, Tensor | None, Tensor], Streams],
    again: Callable[[Tensor, Tensor | None, Tensor], Streams],
) -> Streams:
    """``plain(h, p, e)``, in C; ``again`` is the same without a change of the running statistics.

    The parameters of each layer: weight and bias of B1, B2, A1, A2, B3 and, with positions, C1 and C2, then of the
    norms of h and of e. Scale ``[N, 1]`` is for layers that are scaled.
    """
    memory = None
    if torch.is_grad_enabled() or any(norm.of_rows for layer in layers for norm in layer.norms):
        memory = Lease(len(layers), _memory(h, p, e), h.dtype)
    arguments = (h, p, e, layers, memory, scale, edges)
    try:
        if p is None:
            h_new, e_new = _layers_without_positions(
                *arguments,
                parameters=parameters,
                plain=lambda *x: again(*x[:3])[::2],
                instead=lambda *x: plain(*x[:3])[::2],
            )
            return h_new, None, e_new  # type: ignore[return-value]
        results = _layers(
            *arguments, parameters=parameters, plain=lambda *x: again(*x[:3]), instead=lambda *x: plain(*x[:3])
        )
        return tuple(results)  # type: ignore[return-value]
    finally:
        if memory is not None and not torch.is_grad_enabled():
            memory.give_back()


def _forward(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    layers: Sequence[Layer],
    memory: Lease | None,
    scale: Tensor | None,
    edges: Edges,
    *parameters: Tensor,
) -> list[Tensor]:
    new = [None if x is None else empty_rows(x, *x.shape) for x in (h, e, p)]
    call = _common(layers, scale, edges, parameters, memory, p is not None)
    call["in"] = [None if x is None else unit_rows(x) for x in (h, e, p)]
    tables = [looked_up(x) for x in (h, e)]
    call["table"] = [None if one is None else unit_rows(one.values) for one in tables]
    call["kind"] = [None if one is None else one.kind for one in tables]
    library_for(h).call("gated_layers_forward", out=new, **call)
    counters = [norm.batches for layer in layers for norm in layer.norms if norm.of_rows and norm.batches is not None]
    if counters:
        torch._foreach_add_(counters, 1)
    return [x for x in (new[0], new[2], new[1]) if x is not None]


def _memory(h: Tensor, p: Tensor | None, e: Tensor) -> int:
    """Numbers for a layer (see ``gated_layers`` in csrc/api.h)."""
    streams = 1 if p is None else 2
    return (3 * streams * h.size(0) + 2 * e.size(0) + 6) * padded_width(h.size(1))


def _common(
    layers: Sequence[Layer],
    scale: Tensor | None,
    edges: Edges,
    parameters: Sequence[Tensor],
    memory: Lease | None,
    positions: bool,
) -> dict[str, Any]:
    """What both directions take."""
    source, target = edges.edge_index
    in_start, in_edge = edges.by_target
    return {
        "threads": threads(),
        "count": len(layers),
        "positions": positions,
        "edges": {
            "nodes": edges.num_nodes,
            "source": source,
            "target": target,
            "in_start": in_start,
            "in_edge": in_edge,
        },
        "cuts": edges.cuts,
        "scale": scale,
        "memory": [] if memory is None else memory.tensors(),
        "layer": _layers_in_c(layers, parameters, memory),
    }


def _layers_in_c(layers: Sequence[Layer], parameters: Sequence[Tensor], memory: Lease | None) -> Any:
    """The array of them; where there is a backward pass it is made once for both passes."""
    each = len(parameters) // len(layers)

    def make() -> tuple[Any, Any]:
        values = [_layer(layer, parameters[n * each : (n + 1) * each]) for n, layer in enumerate(layers)]
        return library_for(parameters[0]).array("gated_layers_forward", "layer", values), values

    if memory is None:
        return make()[1]
    statistics = [one for layer in layers for norm in layer.norms for one in (norm.running_mean, norm.running_variance)]
    array, _ = memory.once([*parameters, *statistics], make)
    return array


def _layer(layer: Layer, parameters: Sequence[Tensor]) -> dict[str, Any]:
    norms = zip(layer.norms, (parameters[-4:-2], parameters[-2:]), strict=True)
    return {
        "residual": layer.residual,
        "scaled": layer.scaled,
        "drop_branch": layer.drop_branch,
        "dropout": layer.dropout,
        "seed": layer.seeds,
        "map": [unit_rows(weight) for weight in parameters[:-4:2]],
        "bias": parameters[1:-4:2],
        "norm": [norm.in_c(weight, bias) for norm, (weight, bias) in norms],
    }


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    h, p, e, layers, memory, scale, edges, *parameters = arguments
    given = (gradients[0], gradients[-1], None if p is None else gradients[1])
    found = [None if x is None else empty_rows(x, *x.shape) for x in (h, e, p)]
    of_parameters = h.new_empty(sum(parameter.numel() for parameter in parameters))
    call = _common(layers, scale, edges, parameters, memory, p is not None)
    call["edges"]["out_start"], call["edges"]["out_edge"] = edges.by_source
    library_for(h).call(
        "gated_layers_backward",
        out_gradient=[None if x is None else unit_rows(x) for x in given],
        in_gradient=found,
        parameters_gradient=of_parameters,
        **call,
    )
    memory.give_back()
    of_h, of_e, of_p = found
    return [of_h, of_p, of_e, None, None, None, None, of_parameters]


_layers = Operator(_forward, results=3, kept_from=3, gradient=_gradient)
_layers_without_positions = Operator(_forward, results=2, kept_from=2, gradient=_gradient)
