"""The fused form of GatedGCN's convolution; :mod:`lspe.ops.gate` has its plain twin.

A batch is worked on in pieces of some 500 nodes: what the maps make of a piece is still in the caches when the gates
need it, and only what the backward pass cannot do without is kept.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.edges import pieces_at_most
from lspe.ops.fused.layout import empty_rows, padded_rows, padded_width, row_step, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import operator
from lspe.ops.fused.packing import Columns, empty_packed, pack_maps, unpack_maps


def _forward(h: Tensor, p: Tensor | None, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """``others``: weights and biases of B1, B2, A1, A2, C2, C1, B3, and the edges cut and in both orders.

    Beside the results it returns, for the backward pass, the values A2 [h, p] and C2 p of each node side by side, and
    the packed maps of h (the first four), of p (A1 to C1) and of e.
    """
    weights, biases, (edge_index, cuts, in_start, in_edge, *_) = others[:7], others[7:14], others[14:]
    h, e, p = unit_rows(h), unit_rows(e), None if p is None else unit_rows(p)
    h_new, p_new, eta_hat, values = _results(h, p, e, weights[0].size(0))
    packed = [pack_maps(maps, h) for maps in _by_input(weights, h.size(1))]
    bias = pack_maps([Columns(bias.unsqueeze(1)) for bias in biases if bias is not None], h)[0]
    failed = library_for(h).convolution_forward(
        threads(),
        *_sizes(cuts, eta_hat.size(1)),
        edge_index,
        in_start,
        in_edge,
        *_inputs(h, p, e, packed),
        bias,
        values,
        eta_hat,
        h_new,
        p_new,
    )
    _check_memory(failed)
    return h_new, p_new, eta_hat, values, *packed


def _sizes(cuts: Tensor, width: int) -> tuple[int, Tensor, int, int]:
    return cuts.size(1) - 1, cuts, width, padded_width(width)


def _inputs(h: Tensor, p: Tensor | None, e: Tensor, packed: Sequence[Tensor]) -> list[Tensor | int | None]:
    """Each as the C sources take it: its rows, how far apart they are, its columns, the maps that see it."""
    arguments: list[Tensor | int | None] = []
    for x, maps in zip((h, p, e), packed, strict=True):
        arguments += [None, 0, 0, None] if x is None else [x, row_step(x), x.size(1), maps]
    return arguments


def _check_memory(failed: int) -> None:
    if failed:
        raise MemoryError("no memory for the maps of a piece of the batch")


def _forward_like(h: Tensor, p: Tensor | None, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    packed = (empty_packed(maps, h) for maps in _by_input(others[:7], h.size(1)))
    return *_results(h, p, e, others[0].size(0)), *packed


def _results(h: Tensor, p: Tensor | None, e: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    nodes, streams = h.size(0), 1 if p is None else 2
    values = h.new_empty(nodes, streams * padded_width(width))
    p_new = empty_rows(h, 0 if p is None else nodes, width)
    return empty_rows(h, nodes, width), p_new, empty_rows(e, e.size(0), width), values


def _by_input(weights: Sequence[Any], width: int) -> tuple[list[Columns], list[Columns], list[Columns]]:
    """What B1, B2, A1, A2, C2, C1, B3 do with h (of this width), with p and with e."""
    B1, B2, A1, A2, C2, C1, B3 = weights
    of_h = [Columns(weight, 0, width) for weight in (B1, B2, A1, A2)]
    of_p = [] if C1 is None else [Columns(A1, width), Columns(A2, width), Columns(C2), Columns(C1)]
    return of_h, of_p, [Columns(B3)]


def _backward(
    h_gradient: Tensor,
    p_gradient: Tensor,
    eta_gradient: Tensor,
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    eta_hat: Tensor,
    values: Tensor,
    of_h: Tensor,
    of_p: Tensor,
    of_e: Tensor,
    edge_index: Tensor,
    cuts: Tensor,
    *order: Tensor,
) -> list[Tensor]:
    """Gradients of h, p, e, the weights and the biases; those that do not exist without p are left out."""
    width = eta_hat.size(1)
    h, e, p = unit_rows(h), unit_rows(e), None if p is None else unit_rows(p)
    of_inputs, of_weights, of_biases = _gradients(h, p, e, width)
    of_rows: list[Tensor | int | None] = []
    for x in of_inputs:
        of_rows += [None, 0] if x is None else [x, padded_width(x.size(1))]
    of_maps = [0 if x is None else x.size(1) * maps.size(1) for x, maps in ((h, of_h), (p, of_p), (e, of_e))]
    bias_size = (2 if p is None else 3) * 2 * padded_width(width)
    total = h.new_empty(sum(of_maps) + bias_size)
    failed = library_for(h).convolution_backward(
        threads(),
        *_sizes(cuts, width),
        edge_index,
        edge_index[1],
        *order,
        *_inputs(h, p, e, (of_h, of_p, of_e)),
        values,
        *(padded_rows(x) for x in (eta_hat, eta_gradient, h_gradient, p_gradient)),
        *of_rows,
        total.numel(),
        total.new_empty(pieces_at_most(h.size(0)), total.numel()),
        total,
    )
    _check_memory(failed)
    *packed, of_bias = total.split([*of_maps, bias_size])
    for part, maps in zip(packed, _by_input(of_weights, h.size(1)), strict=True):
        if maps:
            unpack_maps(part, maps)
    # B3's bias is added to the same logits as B1's
    of_bias = torch.cat([of_bias, of_bias[: padded_width(width)]])
    unpack_maps(of_bias, [Columns(bias.unsqueeze(1)) for bias in of_biases if bias is not None])
    return [gradient for gradient in (*of_inputs, *of_weights, *of_biases) if gradient is not None]


def _gradients(
    h: Tensor, p: Tensor | None, e: Tensor, width: int
) -> tuple[list[Tensor | None], list[Tensor | None], list[Tensor | None]]:
    """Empty, of h, p, e, the weights and the biases; ``None`` for those that do not exist without p."""
    of_inputs = [None if x is None else empty_rows(x, *x.shape) for x in (h, p, e)]
    of_h, of_p, of_e = (0 if x is None else x.size(1) for x in (h, p, e))
    seen = (of_h, of_h, of_h + of_p, of_h + of_p, of_p, of_p, of_e)
    return (
        of_inputs,
        [h.new_empty(width, inputs) if inputs else None for inputs in seen],
        [h.new_empty(width) if inputs else None for inputs in seen],
    )


def _backward_like(*arguments: Any) -> list[Tensor]:
    _, _, _, h, p, e, eta_hat, *_ = arguments
    return [gradient for part in _gradients(h, p, e, eta_hat.size(1)) for gradient in part if gradient is not None]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:3], *output[2:], *inputs[-6:])


def _differentiate(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
    h, p, e, eta_hat, *_ = ctx.saved_tensors
    width, of_p = eta_hat.size(1), p is not None
    given = [
        h.new_zeros(rows, width) if gradient is None else gradient
        for gradient, rows in zip(gradients, (h.size(0), h.size(0) if of_p else 0, e.size(0)), strict=False)
    ]
    found = iter(_convolution_backward(*given, *ctx.saved_tensors))
    of_maps = [True, True, True, True, of_p, of_p, True]
    return *[next(found) if exists else None for exists in (True, of_p, True, *of_maps, *of_maps)], *[None] * 6


_MAPS = ", ".join(f"Tensor {name}" for name in ("B1", "B2", "A1", "A2")) + ", Tensor? C2, Tensor? C1, Tensor B3"
_ORDER = "Tensor edge_index, Tensor cuts, Tensor in_start, Tensor in_edge, Tensor out_start, Tensor out_edge"
_convolution_backward = operator(
    "gated_convolution_backward(Tensor h_gradient, Tensor p_gradient, Tensor eta_gradient, Tensor h, Tensor? p, "
    f"Tensor e, Tensor eta_hat, Tensor values, Tensor of_h, Tensor of_p, Tensor of_e, {_ORDER}) -> Tensor[]",
    _backward,
    _backward_like,
)
fused_convolution = operator(
    f"gated_convolution(Tensor h, Tensor? p, Tensor e, {_MAPS}, {_MAPS.lower().replace('tensor', 'Tensor')}, {_ORDER}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _forward,
    _forward_like,
    remember=_remember,
    gradient=_differentiate,
)
