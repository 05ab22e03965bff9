"""GatedGCN's convolution: soft attention over the edges of a node."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lspe.ops.choice import fused
from lspe.ops.edges import Edges
from lspe.ops.native import library
from lspe.ops.rows import pack_maps, padded_rows, padded_width, unpack_maps
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
    order = [maps.B1, maps.B2, maps.A1, maps.A2, maps.B3]
    if p is not None:
        assert maps.C1 is not None
        assert maps.C2 is not None
        order[4:4] = [maps.C1, maps.C2]
    h_new, p_new, eta_hat, _ = _convolution(
        h,
        p,
        e,
        [linear.weight for linear in order],
        [linear.bias for linear in order],
        edges.edge_index,
        *edges.by_target,
        *edges.by_source,
    )
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


@torch.library.custom_op("lspe::gated_convolution", mutates_args=(), device_types="cpu")
def _convolution(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    edge_index: Tensor,
    in_start: Tensor,
    in_edge: Tensor,
    out_start: Tensor,
    out_edge: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``weights`` and ``biases`` of B1, B2, A1, A2, (C1, C2,) B3.

    The fourth result holds B1 h, B2 h, A1 [h, p], A2 [h, p], C1 p and C2 p of each node, for the backward pass.
    """
    native = library(h.dtype)
    assert native is not None
    maps = _Packed(h, p, weights)
    width, padded = maps.width, maps.padded
    bias = h.new_zeros(len(biases), padded)
    for row, values in zip(bias, biases, strict=True):
        row[:width] = values

    node = h.new_empty(h.size(0), maps.parts * padded)
    torch.addmm(bias[:4].flatten(), h, maps.of_h[: h.size(1)], out=node[:, : 4 * padded])
    if p is not None:
        node[:, 4 * padded :] = bias[4:6].flatten()
        node[:, 2 * padded :].addmm_(p, maps.of_p[: p.size(1)])
    logits = torch.addmm(bias[-1], e, maps.of_e[: e.size(1)])
    out = [h.new_empty(h.size(0), padded), h.new_empty(h.size(0) if p is not None else 0, padded)]
    native.gate_forward(
        torch.get_num_threads(),
        h.size(0),
        padded,
        1 if p is None else 2,
        edge_index.contiguous()[0],
        in_start,
        in_edge,
        node,
        logits,
        *out,
    )
    return out[0][:, :width], out[1][:, :width], logits[:, :width], node


class _Packed:
    """The maps of one layer, by what they see; p's begin where h's third is."""

    def __init__(self, h: Tensor, p: Tensor | None, weights: list[Tensor]) -> None:
        self.width = weights[0].size(0)
        self.padded = padded_width(self.width)
        self.parts = len(weights) - 1
        self.of_h = pack_maps(_of_h(weights, h.size(1)), self.padded)
        if p is not None:
            self.of_p = pack_maps(_of_p(weights, h.size(1)), self.padded)
        self.of_e = pack_maps(weights[-1:], self.padded)


def _of_h(weights: list[Tensor], width: int) -> list[Tensor]:
    return [weight[:, :width] for weight in weights[:4]]


def _of_p(weights: list[Tensor], width: int) -> list[Tensor]:
    return [weight[:, width:] for weight in weights[2:4]] + weights[4:6]


@_convolution.register_fake
def _(
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    edge_index: Tensor,
    in_start: Tensor,
    in_edge: Tensor,
    out_start: Tensor,
    out_edge: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    width = weights[0].size(0)
    padded = padded_width(width)
    rows = (h.size(0), h.size(0) if p is not None else 0, e.size(0))
    out = [h.new_empty(n, padded)[:, :width] for n in rows]
    return out[0], out[1], out[2], h.new_empty(h.size(0), (len(weights) - 1) * padded)


@torch.library.custom_op("lspe::gated_convolution_backward", mutates_args=(), device_types="cpu")
def _convolution_backward(
    h_gradient: Tensor,
    p_gradient: Tensor,
    eta_gradient: Tensor,
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    weights: list[Tensor],
    logits: Tensor,
    node: Tensor,
    edge_index: Tensor,
    in_start: Tensor,
    in_edge: Tensor,
    out_start: Tensor,
    out_edge: Tensor,
) -> list[Tensor]:
    """Gradients of h, p (empty without it), e, the weights and the biases."""
    native = library(h.dtype)
    assert native is not None
    maps = _Packed(h, p, weights)
    width, padded, nodes = maps.width, maps.padded, h.size(0)
    edge_index = edge_index.contiguous()
    node_gradient, edge_gradient = torch.empty_like(node), e.new_empty(e.size(0), padded)
    streams = 1 if p is None else 2
    native.gate_backward(
        torch.get_num_threads(),
        nodes,
        width,
        padded,
        streams,
        edge_index[0],
        edge_index[1],
        in_start,
        in_edge,
        out_start,
        out_edge,
        node,
        padded_rows(logits, padded),
        padded_rows(eta_gradient, padded),
        padded_rows(h_gradient, padded),
        padded_rows(p_gradient, padded),
        node_gradient,
        edge_gradient,
        torch.empty_like(edge_gradient),
        h.new_empty(nodes, streams * padded),
    )
    gradients = _empty_gradients(h, p, e, weights)
    to_h, to_e = node_gradient[:, : 4 * padded], edge_gradient
    torch.mm(to_h, maps.of_h.t(), out=_whole(gradients[0], h))
    torch.mm(to_e, maps.of_e.t(), out=_whole(gradients[2], e))
    of_weights = gradients[3 : 3 + len(weights)]
    unpack_maps(torch.mm(h.t(), to_h), _of_h(of_weights, h.size(1)), padded)
    unpack_maps(torch.mm(e.t(), to_e), of_weights[-1:], padded)
    if p is not None:
        to_p = node_gradient[:, 2 * padded :]
        torch.mm(to_p, maps.of_p.t(), out=_whole(gradients[1], p))
        unpack_maps(torch.mm(p.t(), to_p), _of_p(of_weights, h.size(1)), padded)
    sums = torch.cat([node_gradient.sum(0), edge_gradient.sum(0)]).view(-1, padded)
    for gradient, total in zip(gradients[-len(weights) :], sums, strict=True):
        gradient.copy_(total[:width])
    return gradients


def _whole(gradient: Tensor, of: Tensor) -> Tensor:
    return padded_rows(gradient, padded_width(of.size(1)))


def _empty_gradients(h: Tensor, p: Tensor | None, e: Tensor, weights: list[Tensor]) -> list[Tensor]:
    def rows_like(x: Tensor) -> Tensor:
        return x.new_empty(x.size(0), padded_width(x.size(1)))[:, : x.size(1)]

    streams = [rows_like(h), h.new_empty(0) if p is None else rows_like(p), rows_like(e)]
    of_weights = [torch.empty_like(weight, memory_format=torch.contiguous_format) for weight in weights]
    return streams + of_weights + [weight.new_empty(weight.size(0)) for weight in weights]


@_convolution_backward.register_fake
def _(
    h_gradient: Tensor,
    p_gradient: Tensor,
    eta_gradient: Tensor,
    h: Tensor,
    p: Tensor | None,
    e: Tensor,
    weights: list[Tensor],
    logits: Tensor,
    node: Tensor,
    edge_index: Tensor,
    in_start: Tensor,
    in_edge: Tensor,
    out_start: Tensor,
    out_edge: Tensor,
) -> list[Tensor]:
    return _empty_gradients(h, p, e, weights)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    h, p, e, weights, _, *order = inputs
    _, _, eta_hat, node = output
    ctx.set_materialize_grads(False)
    ctx.has_positions = p is not None
    ctx.weights = len(weights)
    ctx.save_for_backward(h, *([p] if p is not None else []), e, *weights, eta_hat, node, *order)


def _differentiate(
    ctx: Any, h_new: Tensor | None, p_new: Tensor | None, eta_hat: Tensor | None, _: None
) -> tuple[Any, ...]:
    saved = list(ctx.saved_tensors)
    h, p, e = saved.pop(0), saved.pop(0) if ctx.has_positions else None, saved.pop(0)
    weights, saved = saved[: ctx.weights], saved[ctx.weights :]
    width = weights[0].size(0)
    given = [
        h.new_zeros(rows, width) if gradient is None else gradient
        for gradient, rows in ((h_new, h.size(0)), (p_new, 0 if p is None else h.size(0)), (eta_hat, e.size(0)))
    ]
    of_h, of_p, of_e, *others = _convolution_backward(*given, h, p, e, weights, *saved)
    of_weights, of_biases = others[: ctx.weights], others[ctx.weights :]
    return of_h, None if p is None else of_p, of_e, of_weights, of_biases, *[None] * 5


_convolution.register_autograd(_differentiate, setup_context=_remember)
