"""A whole GatedGCN layer in C; :class:`lspe.nn.GatedGCN` has the equations.

The maps of h are one product of matrices and those of p another; widths are padded inside, because such products are
slow at odd ones. Gates, their normalisation and both sums are one pass over the edges. A batch is worked on in pieces
of some 500 nodes: what the maps make of a piece is still in the caches when the gates need it, and only what the
backward pass cannot do without is kept.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from lspe.ops.edges import Edges
from lspe.ops.fused.layout import empty_rows, padded_width, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator

Streams = tuple[Tensor, Tensor | None, Tensor]


class Options(NamedTuple):
    """What a layer does that is no tensor."""

    residual: bool
    dropout: float
    seeds: tuple[int, int, int]
    of_rows: tuple[bool, bool]
    epsilon: tuple[float, float]
    momentum: tuple[float, float]


def gated_layer(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    maps: Sequence[nn.Linear],
    norms: Sequence[nn.BatchNorm1d],
    edges: Edges,
    scale: Tensor | None,
    options: Options,
    *,
    plain: Callable[[Tensor, Tensor | None, Tensor], Streams],
    again: Callable[[Tensor, Tensor | None, Tensor], Streams],
) -> Streams:
    """``plain(h, p, e)``, in C; ``again`` is the same without a change of the running statistics.

    The maps are B1, B2, A1, A2, B3 and, with positions, C1 and C2; the norms those of h and of e.
    """
    parameters = [parameter for x in (*maps, *norms) for parameter in (x.weight, x.bias)]
    running = [statistic for x in norms for statistic in (x.running_mean, x.running_var)]
    order = (edges.edge_index, edges.cuts, *edges.by_target, *edges.by_source)
    arguments = (h, p, e, options, scale, running, order, *parameters)
    if p is None:
        h_new, e_new = _layer_without_positions(
            *arguments, plain=lambda *x: again(*x[:3])[::2], instead=lambda *x: plain(*x[:3])[::2]
        )
        return h_new, None, e_new  # type: ignore[return-value]
    results = _layer(*arguments, plain=lambda *x: again(*x[:3]), instead=lambda *x: plain(*x[:3]))
    return tuple(results)  # type: ignore[return-value]


def _forward(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    options: Options,
    scale: Tensor | None,
    running: Sequence[Tensor],
    order: Sequence[Tensor],
    *parameters: Tensor,
) -> list[Tensor]:
    """Beside the results, for the backward pass: the sums, η̂, the values A2 [h, p] and C2 p, BN's statistics."""
    nodes, width = h.shape
    inputs = [h, e] if p is None else [h, p, e]
    new = [empty_rows(x, *x.shape) for x in inputs]
    sums = [empty_rows(x, *x.shape) for x in inputs]
    values = h.new_empty(nodes, len(sums[1:]) * padded_width(width))
    statistics = h.new_empty(6, width)
    call = _common(h, p, e, options, scale, order, parameters, sums, values, statistics)
    for name, out in zip(_names(p), new, strict=True):
        call[name]["out"] = out
    for norm, (mean, variance) in zip(("norm_h", "norm_e"), (running[:2], running[2:]), strict=True):
        call[norm] |= {"running_mean": mean, "running_variance": variance}
    library_for(h).call("gated_layer_forward", **call)
    return [*new, *sums, values, statistics]


def _names(p: Tensor | None) -> str:
    return "he" if p is None else "hpe"


def _common(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    options: Options,
    scale: Tensor | None,
    order: Sequence[Tensor],
    parameters: Sequence[Tensor],
    sums: Sequence[Tensor],
    values: Tensor,
    statistics: Tensor,
) -> dict[str, Any]:
    """What both directions take."""
    edge_index, cuts, in_start, in_edge, out_start, out_edge = order
    weights, biases = parameters[:-4:2], parameters[1:-4:2]
    h_seed, e_seed, p_seed = options.seeds
    h_sum, *p_sum, eta_hat = sums
    call: dict[str, Any] = {
        "threads": threads(),
        "positions": p is not None,
        "residual": options.residual,
        "dropout": options.dropout,
        "edges": {
            "nodes": h.size(0),
            "source": edge_index[0],
            "target": edge_index[1],
            "in_start": in_start,
            "in_edge": in_edge,
            "out_start": out_start,
            "out_edge": out_edge,
        },
        "cuts": cuts,
        "h": {"in": unit_rows(h), "seed": h_seed},
        "e": {"in": unit_rows(e), "seed": e_seed},
        "map": [unit_rows(weight) for weight in weights],
        "bias": biases,
        "scale": scale,
        "values": values,
        "h_sum": h_sum,
        "eta_hat": eta_hat,
    }
    if p is not None:
        call |= {"p": {"in": unit_rows(p), "seed": p_seed}, "p_sum": p_sum[0]}
    for number, name in enumerate(("norm_h", "norm_e")):
        call[name] = {
            "of_rows": options.of_rows[number],
            "epsilon": options.epsilon[number],
            "momentum": options.momentum[number],
            "weight": parameters[2 * number - 4],
            "bias": parameters[2 * number - 3],
            "mean": statistics[3 * number],
            "variance": statistics[3 * number + 1],
            "rate": statistics[3 * number + 2],
        }
    return call


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    h, p, e, options, scale, _, order, *parameters = arguments
    *sums, values, statistics = kept
    inputs = [h, e] if p is None else [h, p, e]
    call = _common(h, p, e, options, scale, order, parameters, sums, values, statistics)
    found = [empty_rows(x, *x.shape) for x in inputs]
    for name, x, of_input, gradient in zip(_names(p), inputs, found, gradients, strict=True):
        of_output = x.new_zeros(x.shape) if gradient is None else unit_rows(gradient)
        call[name] |= {"out_gradient": of_output, "in_gradient": of_input}
    of_parameters = _split_like(parameters)
    call["map_gradient"], call["bias_gradient"] = of_parameters[:-4:2], of_parameters[1:-4:2]
    for number, name in enumerate(("norm_h", "norm_e")):
        call[name] |= {
            "weight_gradient": of_parameters[2 * number - 4],
            "bias_gradient": of_parameters[2 * number - 3],
        }
    library_for(h).call("gated_layer_backward", **call)
    of_h, *of_p, of_e = found
    return [of_h, of_p[0] if of_p else None, of_e, None, None, None, None, *of_parameters]


def _split_like(parameters: Sequence[Tensor]) -> list[Tensor]:
    """Room for a gradient of each, in one piece."""
    whole = parameters[0].new_empty(sum(x.numel() for x in parameters))
    return [
        part.view(x.shape) for part, x in zip(whole.split([x.numel() for x in parameters]), parameters, strict=True)
    ]


_layer = Operator(_forward, results=3, kept_from=3, gradient=_gradient)
_layer_without_positions = Operator(_forward, results=2, kept_from=2, gradient=_gradient)
