"""GatedGCN's convolution: soft attention over the edges of a node."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lspe.ops.choice import fused
from lspe.ops.edges import Edges
from lspe.ops.maps import Columns, empty_packed, pack_maps, unpack_maps
from lspe.ops.native import library_for, threads
from lspe.ops.operator import operator
from lspe.ops.rows import empty_rows, padded_rows, padded_width
from lspe.ops.scatter import scatter_sum

EPSILON = 1e-6


class GateMaps(NamedTuple):
    """The linear maps of a GatedGCN layer, by the paper's letters; C1 and C2 only where positions are learned."""

    A1: nn.Linear
    A2: nn.Linear
    B1: nn.Linear
    B2: nn.Linear
    B3: nn.Linear
    C1: nn.Linear | None = None
    C2: nn.Linear | None = None


def gated_convolution(
    h: Tensor, p: Tensor | None, e: Tensor, maps: GateMaps, edges: Edges
) -> tuple[Tensor, Tensor | None, Tensor]:
    r"""Gate the edges, and sum what they carry.

    .. math::
        \tilde h_i &= A_1 \begin{bmatrix} h_i \\ p_i \end{bmatrix}
            + \sum_{j} \eta_{ij} \odot A_2 \begin{bmatrix} h_j \\ p_j \end{bmatrix}, \qquad
        \tilde p_i = C_1 p_i + \sum_{j} \eta_{ij} \odot C_2 p_j \\
        \hat\eta_{ij} &= B_1 h_i + B_2 h_j + B_3 e_{ij}, \qquad
        \eta_{ij} = \frac{\sigma(\hat\eta_{ij})}{\sum_{j'} \sigma(\hat\eta_{ij'}) + \epsilon}

    Fused, the maps of h are one product of matrices and those of p another; widths are padded inside, because such
    products are slow at odd ones. Gates, their normalisation and both sums are one pass over the edges.

    Args:
        h: ``[N, d]``.
        p: ``[N, d]``, or ``None`` where A1 and A2 see h alone.
        e: ``[E, d]``.
        maps: A1, A2: 2d → d (d → d without p), the others d → d.
        edges: of N nodes.

    Returns:
        :math:`\tilde h` ``[N, d]``, :math:`\tilde p` ``[N, d]`` or ``None``, :math:`\hat\eta` ``[E, d]``.

    """
    if not fused(h, e):
        return _plain(h, p, e, maps, edges)
    by_part = [maps.B1, maps.B2, maps.A1, maps.A2, maps.C1, maps.C2, maps.B3]
    weights = [None if linear is None else linear.weight for linear in by_part]
    biases = [None if linear is None else linear.bias for linear in by_part]
    order = (edges.edge_index.contiguous(), *edges.by_target, *edges.by_source)
    h_new, p_new, eta_hat, *_ = _convolution(h, p, e, *weights, *biases, *order)
    return h_new, None if p is None else p_new, eta_hat


def _plain(
    h: Tensor, p: Tensor | None, e: Tensor, maps: GateMaps, edges: Edges
) -> tuple[Tensor, Tensor | None, Tensor]:
    node = torch.cat([h, p], dim=-1) if p is not None else h
    values = [maps.A2(node)]
    if p is not None and maps.C2 is not None:
        values.append(maps.C2(p))
    eta_hat, sums = gated_aggregate(maps.B1(h), maps.B2(h), maps.B3(e), values, edges.edge_index)
    h_new = maps.A1(node) + sums[0]
    if p is None or maps.C1 is None:
        return h_new, None, eta_hat
    return h_new, maps.C1(p) + sums[1], eta_hat


def gated_aggregate(
    at_target: Tensor,
    at_source: Tensor,
    at_edge: Tensor,
    values: Sequence[Tensor],
    edge_index: Tensor,
) -> tuple[Tensor, list[Tensor]]:
    r"""The gates and their sums alone, in plain PyTorch.

    .. math::
        \hat\eta_{ij} = a_i + b_j + c_{ij}, \qquad
        \eta_{ij} = \frac{\sigma(\hat\eta_{ij})}{\sum_{j'} \sigma(\hat\eta_{ij'}) + \epsilon}, \qquad
        s_i = \sum_j \eta_{ij} \odot v_j

    Args:
        at_target: a, ``[N, d]``.
        at_source: b, ``[N, d]``.
        at_edge: c, ``[E, d]``.
        values: one or more v, each ``[N, d]``, all under the same gate.
        edge_index: ``[2, E]``.

    Returns:
        :math:`\hat\eta` ``[E, d]`` and a sum s ``[N, d]`` for each v.

    """
    source, target = edge_index
    logits = at_target[target] + at_source[source] + at_edge
    gate = torch.sigmoid(logits)
    total = scatter_sum(gate, target, at_target.size(0)) + EPSILON
    return logits, [scatter_sum(gate * v[source], target, v.size(0)) / total for v in values]


def _convolve(h: Tensor, p: Tensor | None, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """``others``: weights and biases of B1, B2, A1, A2, C1, C2, B3, and the edges in both orders.

    Beside the results it returns, for the backward pass, B1 h, B2 h, A1 [h, p], A2 [h, p], C1 p and C2 p of each node
    side by side, and the packed maps of h (to the first four of these), of p (to the last four) and of e.
    """
    weights, biases, (edge_index, in_start, in_edge, *_) = others[:7], others[7:14], others[14:]
    h_new, p_new, eta_hat, node = _results(h, p, e, weights[0].size(0))
    of_h, of_p, of_e = (pack_maps(maps, h) for maps in _by_input(weights, h.size(1)))
    bias = pack_maps([Columns(bias.unsqueeze(1)) for bias in biases if bias is not None], h)[0]
    padded = padded_width(eta_hat.size(1))
    torch.addmm(bias[: 4 * padded], h, of_h[: h.size(1)], out=node[:, : 4 * padded])
    if p is not None:
        node[:, 4 * padded :] = bias[4 * padded : 6 * padded]
        node[:, 2 * padded :].addmm_(p, of_p[: p.size(1)])
    logits = torch.addmm(bias[-padded:], e, of_e[: e.size(1)], out=padded_rows(eta_hat))
    library_for(h).gate_forward(
        threads(),
        h.size(0),
        padded,
        1 if p is None else 2,
        edge_index,
        in_start,
        in_edge,
        node,
        logits,
        h_new,
        p_new,
    )
    return h_new, p_new, eta_hat, node, of_h, of_p, of_e


def _convolve_like(h: Tensor, p: Tensor | None, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    packed = (empty_packed(maps, h) for maps in _by_input(others[:7], h.size(1)))
    return *_results(h, p, e, others[0].size(0)), *packed


def _results(h: Tensor, p: Tensor | None, e: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    nodes, parts = h.size(0), 4 if p is None else 6
    node = h.new_empty(nodes, parts * padded_width(width))
    p_new = empty_rows(h, 0 if p is None else nodes, width)
    return empty_rows(h, nodes, width), p_new, empty_rows(e, e.size(0), width), node


def _by_input(weights: Sequence[Any], width: int) -> tuple[list[Columns], list[Columns], list[Columns]]:
    """What B1, B2, A1, A2, C1, C2, B3 do with h (of this width), with p and with e."""
    B1, B2, A1, A2, C1, C2, B3 = weights
    of_h = [Columns(weight, 0, width) for weight in (B1, B2, A1, A2)]
    of_p = [] if C1 is None else [Columns(A1, width), Columns(A2, width), Columns(C1), Columns(C2)]
    return of_h, of_p, [Columns(B3)]


def _convolve_backward(
    h_gradient: Tensor,
    p_gradient: Tensor,
    eta_gradient: Tensor,
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    eta_hat: Tensor,
    node: Tensor,
    of_h: Tensor,
    of_p: Tensor,
    of_e: Tensor,
    edge_index: Tensor,
    *order: Tensor,
) -> list[Tensor]:
    """Gradients of h, p, e, the weights and the biases; those that do not exist without p are left out."""
    width, streams = eta_hat.size(1), 1 if p is None else 2
    padded = padded_width(width)
    node_gradient, edge_gradient = torch.empty_like(node), e.new_empty(e.size(0), padded)
    library_for(h).gate_backward(
        threads(),
        h.size(0),
        width,
        padded,
        streams,
        edge_index,
        edge_index[1],
        *order,
        node,
        padded_rows(eta_hat),
        padded_rows(eta_gradient),
        padded_rows(h_gradient),
        padded_rows(p_gradient),
        node_gradient,
        edge_gradient,
        torch.empty_like(edge_gradient),
        h.new_empty(h.size(0), streams * padded),
    )
    of_inputs, of_weights, of_biases = _gradients(h, p, e, width)
    to_h, to_p, to_e = node_gradient[:, : 4 * padded], node_gradient[:, 2 * padded :], edge_gradient
    parts = zip((h, p, e), (to_h, to_p, to_e), (of_h, of_p, of_e), strict=True)
    for (x, to, maps), of_x, of_maps in zip(parts, of_inputs, _by_input(of_weights, h.size(1)), strict=True):
        if x is not None and of_x is not None:
            torch.mm(to, maps.t(), out=padded_rows(of_x))
            unpack_maps(torch.mm(x.t(), to), of_maps)
    sums = torch.cat([node_gradient.sum(0), edge_gradient.sum(0)]).unsqueeze(0)
    unpack_maps(sums, [Columns(bias.unsqueeze(1)) for bias in of_biases if bias is not None])
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


def _convolve_backward_like(*arguments: Any) -> list[Tensor]:
    _, _, _, h, p, e, eta_hat, *_ = arguments
    return [gradient for part in _gradients(h, p, e, eta_hat.size(1)) for gradient in part if gradient is not None]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:3], *output[2:], *inputs[-5:])


def _differentiate(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
    h, p, e, eta_hat, *_ = ctx.saved_tensors
    width, of_p = eta_hat.size(1), p is not None
    given = [
        h.new_zeros(rows, width) if gradient is None else gradient
        for gradient, rows in zip(gradients, (h.size(0), h.size(0) if of_p else 0, e.size(0)), strict=False)
    ]
    found = iter(_convolution_backward(*given, *ctx.saved_tensors))
    of_maps = [True, True, True, True, of_p, of_p, True]
    return *[next(found) if exists else None for exists in (True, of_p, True, *of_maps, *of_maps)], *[None] * 5


_MAPS = ", ".join(f"Tensor {name}" for name in ("B1", "B2", "A1", "A2")) + ", Tensor? C1, Tensor? C2, Tensor B3"
_ORDER = "Tensor edge_index, Tensor in_start, Tensor in_edge, Tensor out_start, Tensor out_edge"
_convolution_backward = operator(
    "gated_convolution_backward(Tensor h_gradient, Tensor p_gradient, Tensor eta_gradient, Tensor h, Tensor? p, "
    f"Tensor e, Tensor eta_hat, Tensor node, Tensor of_h, Tensor of_p, Tensor of_e, {_ORDER}) -> Tensor[]",
    _convolve_backward,
    _convolve_backward_like,
)
_convolution = operator(
    f"gated_convolution(Tensor h, Tensor? p, Tensor e, {_MAPS}, {_MAPS.lower().replace('tensor', 'Tensor')}, {_ORDER}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _convolve,
    _convolve_like,
    remember=_remember,
    gradient=_differentiate,
)
