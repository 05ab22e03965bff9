"""The fused form of attention over all pairs; :mod:`lspe.ops.attention` has its plain twin."""

from typing import Any

import torch
from torch import Tensor

from lspe.ops.fused.layout import empty_rows, padded_rows, padded_width
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import operator
from lspe.ops.fused.packing import Columns, empty_packed, pack_maps, unpack_maps


def _forward(x: Tensor, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """``others``: the weights Q, K, V, Q_added, K_added, E, then as :func:`_sizes` takes them.

    Beside the result, for the backward pass: the five maps of each node side by side, E e, and the packed weights.
    """
    weights, (channel, numbers, real, added, graph_start, edge_index, in_start, in_edge, heads) = others[:6], others[6:]
    of_x, of_e = (pack_maps(part, x) for part in _by_input(weights))
    maps, edges = torch.mm(x, of_x[: x.size(1)]), torch.mm(e, of_e[: e.size(1)])
    native = library_for(x)
    wrong = native.edge_across_graphs(graph_start.numel() - 1, graph_start, edge_index, in_start, in_edge)
    if wrong >= 0:
        source, target = edge_index[:, wrong].tolist()
        raise ValueError(f"edge {wrong} ({source} → {target}) joins two graphs: edge_index and batch do not fit")
    out = empty_rows(x, x.size(0), channel.numel())
    failed = native.attention_forward(
        threads(),
        *_sizes(channel, real, added, graph_start, heads),
        graph_start,
        edge_index,
        in_start,
        in_edge,
        maps,
        edges,
        channel,
        numbers,
        real,
        added,
        *_room(e, heads),
        out,
    )
    _check_memory(failed)
    return out, maps, edges, of_x, of_e


def _sizes(channel: Tensor, real: Tensor | None, added: Tensor | None, graph_start: Tensor, heads: int) -> list[int]:
    """Graphs, heads, channels of a head, padded channels of all, rows of the factors' matrices."""
    side = next((matrix.size(1) for matrix in (real, added) if matrix is not None), 0)
    width = channel.numel()
    return [graph_start.numel() - 1, heads, width // heads, padded_width(width), side]


def _room(e: Tensor, heads: int) -> Tensor:
    """For two numbers a edge and head."""
    return e.new_empty(2, e.size(0), padded_width(heads))


def _check_memory(failed: int) -> None:
    if failed:
        raise MemoryError("no memory for a row of attention weights")


def _by_input(weights: Any) -> tuple[list[Columns], list[Columns]]:
    """Q, K, V, Q_added, K_added see x; E sees e."""
    return [Columns(weight) for weight in weights[:5]], [Columns(weights[5])]


def _forward_like(x: Tensor, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    width = others[6].numel()
    of_x, of_e = (empty_packed(part, x) for part in _by_input(others[:6]))
    maps, edges = x.new_empty(x.size(0), of_x.size(1)), e.new_empty(e.size(0), of_e.size(1))
    return empty_rows(x, x.size(0), width), maps, edges, of_x, of_e


def _backward(gradient: Tensor, x: Tensor, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """Gradients of x, e, the weights, the channel and the two numbers."""
    channel, numbers, real, added, out, maps, edges, of_x, of_e, graph_start, edge_index, *in_edges, heads = others
    results = _backward_like(gradient, x, e, *others)
    x_gradient, e_gradient, *of_weights, of_channel, of_numbers = results
    sizes = _sizes(channel, real, added, graph_start, heads)
    graphs = sizes[0]
    # the padding between maps stays zero
    maps_gradient, edges_gradient = torch.zeros_like(maps), torch.zeros_like(edges)
    channel_gradient, factor_gradient = x.new_empty(graphs, channel.numel()), x.new_empty(graphs * heads, 2)
    failed = library_for(x).attention_backward(
        threads(),
        *sizes,
        graph_start,
        edge_index,
        *in_edges,
        maps,
        edges,
        channel,
        numbers,
        real,
        added,
        *_room(e, heads),
        padded_rows(out),
        padded_rows(gradient),
        maps_gradient,
        edges_gradient,
        channel_gradient,
        factor_gradient,
    )
    _check_memory(failed)
    to_x, to_e = _by_input(of_weights)
    torch.mm(maps_gradient, of_x.t(), out=padded_rows(x_gradient))
    torch.mm(edges_gradient, of_e.t(), out=padded_rows(e_gradient))
    unpack_maps(torch.mm(x.t(), maps_gradient), to_x)
    unpack_maps(torch.mm(e.t(), edges_gradient), to_e)
    torch.sum(channel_gradient, 0, out=of_channel)
    torch.sum(factor_gradient, 0, out=of_numbers)
    return results


def _backward_like(_: Tensor, x: Tensor, e: Tensor, channel: Tensor, numbers: Tensor, *__: Any) -> tuple[Tensor, ...]:
    width = channel.numel()
    of_weights = [x.new_empty(width, x.size(1)) for _ in range(5)]
    of_weights.append(e.new_empty(width, e.size(1)))
    return (
        empty_rows(x, *x.shape),
        empty_rows(e, *e.shape),
        *of_weights,
        channel.new_empty(width),
        numbers.new_empty(2),
    )


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.heads = inputs[-1]
    ctx.save_for_backward(*inputs[:2], *inputs[8:12], *output, *inputs[12:-1])


def _differentiate(ctx: Any, gradient: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
    if gradient is None:
        return (None,) * 17
    return *_attention_backward(gradient, *ctx.saved_tensors, ctx.heads), *[None] * 7


_FACTORS = "Tensor channel, Tensor numbers, Tensor? real, Tensor? added"
_GRAPHS = "Tensor graph_start, Tensor edge_index, Tensor in_start, Tensor in_edge, int heads"
_attention_backward = operator(
    f"pair_attention_backward(Tensor gradient, Tensor x, Tensor e, {_FACTORS}, Tensor out, Tensor maps, Tensor edges, "
    f"Tensor of_x, Tensor of_e, {_GRAPHS}) -> ({', '.join(['Tensor'] * 10)})",
    _backward,
    _backward_like,
)
fused_attention = operator(
    "pair_attention(Tensor x, Tensor e, Tensor Q, Tensor K, Tensor V, Tensor Q_added, Tensor K_added, Tensor E, "
    f"{_FACTORS}, {_GRAPHS}) -> ({', '.join(['Tensor'] * 5)})",
    _forward,
    _forward_like,
    remember=_remember,
    gradient=_differentiate,
)
