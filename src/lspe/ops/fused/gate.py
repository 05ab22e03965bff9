"""GatedGCN's convolution in C; :class:`lspe.nn.GatedGCN` has the equations.

The maps of h are one product of matrices and those of p another; widths are padded inside, because such products are
slow at odd ones. Gates, their normalisation and both sums are one pass over the edges. A batch is worked on in pieces
of some 500 nodes: what the maps make of a piece is still in the caches when the gates need it, and only what the
backward pass cannot do without is kept.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lspe.ops.edges import Edges
from lspe.ops.fused.layout import empty_rows, padded_rows, padded_width, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator, without_gradient
from lspe.ops.fused.order import pieces_at_most
from lspe.ops.fused.packing import Columns, empty_packed, pack_maps, unpack_maps

Streams = tuple[Tensor, Tensor | None, Tensor]


def gated_convolution(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    maps: Sequence[nn.Linear | None],
    edges: Edges,
    plain: Callable[[Tensor, Tensor | None, Tensor], Streams],
) -> Streams:
    """``plain(h, p, e)``, in C. The maps are B1, B2, A1, A2, C2, C1, B3; C2 and C1 only with p."""
    weights = [None if linear is None else linear.weight for linear in maps]
    biases = [None if linear is None else linear.bias for linear in maps]
    order = (edges.edge_index, edges.cuts, *edges.by_target, *edges.by_source)
    h_new, p_new, eta_hat = _convolution(h, p, e, *weights, *biases, *order, plain=lambda *inputs: plain(*inputs[:3]))
    assert h_new is not None
    assert eta_hat is not None
    return h_new, None if p is None else p_new, eta_hat


def _forward(h: Tensor, p: Tensor | None, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """``others``: weights and biases of B1, B2, A1, A2, C2, C1, B3, and the edges cut and in both orders.

    Beside the results it returns, for the backward pass, the values A2 [h, p] and C2 p of each node side by side, and
    the packed maps of h (the first four), of p (A1 to C1) and of e.
    """
    weights, biases, (edge_index, cuts, in_start, in_edge, *_) = others[:7], others[7:14], others[14:]
    width = weights[0].size(0)
    h_new, p_new, eta_hat, values = _results(h, p, e, width)
    packed = [pack_maps(maps, h) for maps in _by_input(weights, h.size(1))]
    bias = pack_maps([Columns(bias.unsqueeze(1)) for bias in biases if bias is not None], h)[0]
    library_for(h).call(
        "convolution_forward",
        threads=threads(),
        width=width,
        streams=1 if p is None else 2,
        edges={"nodes": h.size(0), "source": edge_index[0], "in_start": in_start, "in_edge": in_edge},
        cuts=cuts,
        **_inputs((h, p, e), packed),
        bias=bias,
        values=values,
        logits=padded_rows(eta_hat),
        out=[padded_rows(h_new), None if p is None else padded_rows(p_new)],
    )
    return h_new, p_new, eta_hat, values, *packed


def _inputs(
    inputs: Sequence[Tensor | None], packed: Sequence[Tensor], gradients: Sequence[Tensor | None] = (None,) * 3
) -> dict[str, dict[str, Tensor]]:
    """h, p and e as the C sources take them: the rows, the maps that see them, the gradient of the rows."""
    named = zip("hpe", inputs, packed, gradients, strict=True)
    return {
        name: {"x": unit_rows(x), "maps": maps} | ({} if gradient is None else {"gradient": padded_rows(gradient)})
        for name, x, maps, gradient in named
        if x is not None
    }


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
    width, nodes = eta_hat.size(1), h.size(0)
    of_inputs, of_weights, of_biases = _gradients(h, p, e, width)
    of_maps = [0 if x is None else x.size(1) * maps.size(1) for x, maps in ((h, of_h), (p, of_p), (e, of_e))]
    bias_size = (2 if p is None else 3) * 2 * padded_width(width)
    total = h.new_empty(sum(of_maps) + bias_size)
    orders = dict(zip(("in_start", "in_edge", "out_start", "out_edge"), order, strict=True))
    library_for(h).call(
        "convolution_backward",
        threads=threads(),
        width=width,
        streams=1 if p is None else 2,
        edges={"nodes": nodes, "source": edge_index[0], "target": edge_index[1], **orders},
        cuts=cuts,
        **_inputs((h, p, e), (of_h, of_p, of_e), of_inputs),
        values=values,
        logits=padded_rows(eta_hat),
        logits_gradient=padded_rows(eta_gradient),
        out_gradient=[padded_rows(h_gradient), None if p is None else padded_rows(p_gradient)],
        partial=total.new_empty(pieces_at_most(nodes), total.numel()),
        total=total,
    )
    *packed, of_bias = total.split([*of_maps, bias_size])
    for part, maps in zip(packed, _by_input(of_weights, h.size(1)), strict=True):
        if maps:
            unpack_maps(part.view(maps[0].inputs, -1), maps)
    # B3's bias is added to the same logits as B1's
    of_bias = torch.cat([of_bias, of_bias[: padded_width(width)]])
    unpack_maps(of_bias.view(1, -1), [Columns(bias.unsqueeze(1)) for bias in of_biases if bias is not None])
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


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    h, p, e, *_ = arguments
    width, of_p = kept[0].size(1), p is not None
    given = [
        h.new_zeros(rows, width) if gradient is None else gradient
        for gradient, rows in zip(gradients, (h.size(0), h.size(0) if of_p else 0, e.size(0)), strict=True)
    ]
    found = iter(_convolution_backward(*given, h, p, e, *kept, *arguments[-6:]))
    of_maps = [True, True, True, True, of_p, of_p, True]
    return [*(next(found) if exists else None for exists in (True, of_p, True, *of_maps, *of_maps)), *[None] * 6]


_MAPS = ", ".join(f"Tensor {name}" for name in ("B1", "B2", "A1", "A2")) + ", Tensor? C2, Tensor? C1, Tensor B3"
_ORDER = "Tensor edge_index, Tensor cuts, Tensor in_start, Tensor in_edge, Tensor out_start, Tensor out_edge"
_convolution_backward = without_gradient(
    "gated_convolution_backward(Tensor h_gradient, Tensor p_gradient, Tensor eta_gradient, Tensor h, Tensor? p, "
    f"Tensor e, Tensor eta_hat, Tensor values, Tensor of_h, Tensor of_p, Tensor of_e, {_ORDER}) -> Tensor[]",
    _backward,
    _backward_like,
)
_convolution = Operator(
    f"gated_convolution(Tensor h, Tensor? p, Tensor e, {_MAPS}, {_MAPS.lower().replace('tensor', 'Tensor')}, {_ORDER}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _forward,
    _forward_like,
    results=3,
    kept_from=2,
    gradient=_gradient,
)
