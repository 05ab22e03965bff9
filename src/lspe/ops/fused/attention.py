"""Attention over all pairs in C; :class:`lspe.nn.PairAttention` has the equations.

Nothing is padded to the largest graph, and no more than a row of weights is kept: the backward pass computes them
again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.fused.layout import empty_rows, padded_rows, padded_width
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator
from lspe.ops.fused.packing import Columns, pack_maps, unpack_maps
from lspe.ops.pairs import Pairs


def pair_attention(
    x: Tensor,
    e: Tensor,
    e_added: Tensor,
    weights: Sequence[Tensor],
    factors: tuple[Tensor, Tensor],
    pairs: Pairs,
    heads: int,
    plain: Callable[..., Tensor],
) -> Tensor:
    """``plain(x, e, e_added, *factors)``, in C. The weights are those of Q, K, V, Q_added, K_added, E, E_added."""
    are_matrices = factors[0].dim() > 0
    numbers = factors[0].new_ones(2) if are_matrices else torch.stack(factors)
    real, added = (f.flatten(0, 1).contiguous() if are_matrices else None for f in factors)
    order = (pairs.edges.edge_index, *pairs.edges.by_target)
    channel = F.linear(e_added, weights[6])

    def twin(x: Tensor, e: Tensor, *others: Any) -> tuple[Tensor]:
        channel, numbers = others[6], others[7]
        return (plain(x, e, channel, *(factors if are_matrices else numbers.unbind())),)

    arguments = (x, e, *weights[:6], channel, numbers, real, added, pairs.graph_start, *order, heads)
    (out,) = _attention(*arguments, plain=twin)
    assert out is not None
    return out


def _forward(x: Tensor, e: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """``others``: the weights Q, K, V, Q_added, K_added, E, then as :func:`_sizes` takes them.

    Beside the result, for the backward pass: the five maps of each node side by side, E e, and the packed weights.
    """
    weights, (channel, numbers, real, added, graph_start, edge_index, in_start, in_edge, heads) = others[:6], others[6:]
    of_x, of_e = (pack_maps(part, x) for part in _by_input(weights))
    maps, edges = torch.mm(x, of_x[: x.size(1)]), torch.mm(e, of_e[: e.size(1)])
    out = empty_rows(x, x.size(0), channel.numel())
    library_for(x).call(
        "attention_forward",
        **_graphs(x, channel, numbers, real, added, graph_start, edge_index, in_start, in_edge, heads),
        **_room(e, heads),
        maps=maps,
        edge_maps=edges,
        out=padded_rows(out),
    )
    return out, maps, edges, of_x, of_e


def _graphs(
    x: Tensor,
    channel: Tensor,
    numbers: Tensor,
    real: Tensor | None,
    added: Tensor | None,
    graph_start: Tensor,
    edge_index: Tensor,
    in_start: Tensor,
    in_edge: Tensor,
    heads: int,
) -> dict[str, Any]:
    """What both directions take."""
    return {
        "threads": threads(),
        "heads": heads,
        "width": channel.numel() // heads,
        "graph_start": graph_start,
        "edges": {"nodes": x.size(0), "source": edge_index[0], "in_start": in_start, "in_edge": in_edge},
        "channel": channel,
        "factor": numbers.tolist(),
        "factor_matrix": [real, added],
    }


def _room(e: Tensor, heads: int) -> dict[str, Tensor]:
    """For two numbers per edge and head."""
    room = e.new_empty(2, e.size(0), padded_width(heads))
    return {"powers": room[0], "inside": room[1]}


def _by_input(weights: Any) -> tuple[list[Columns], list[Columns]]:
    """Q, K, V, Q_added, K_added see x; E sees e."""
    return [Columns(weight) for weight in weights[:5]], [Columns(weights[5])]


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Of x, e, the weights, the channel and the two numbers."""
    x, e, *_, channel, numbers, real, added, graph_start, edge_index, in_start, in_edge, heads = arguments
    out, maps, edges, of_x, of_e = kept
    gradient = gradients[0]
    assert gradient is not None
    graphs, width = graph_start.numel() - 1, channel.numel()
    # the padding between maps stays zero
    maps_gradient, edges_gradient = torch.zeros_like(maps), torch.zeros_like(edges)
    channel_gradient, factor_gradient = x.new_empty(graphs, width), x.new_empty(graphs * heads, 2)
    library_for(x).call(
        "attention_backward",
        **_graphs(x, channel, numbers, real, added, graph_start, edge_index, in_start, in_edge, heads),
        **_room(e, heads),
        maps=maps,
        edge_maps=edges,
        out=padded_rows(out),
        gradient=padded_rows(gradient),
        maps_gradient=maps_gradient,
        edge_maps_gradient=edges_gradient,
        channel_gradient=channel_gradient,
        factor_gradient=factor_gradient,
    )
    x_gradient, e_gradient = empty_rows(x, *x.shape), empty_rows(e, *e.shape)
    of_weights = [x.new_empty(width, seen.size(1)) for seen in (x, x, x, x, x, e)]
    to_x, to_e = _by_input(of_weights)
    torch.mm(maps_gradient, of_x.t(), out=padded_rows(x_gradient))
    torch.mm(edges_gradient, of_e.t(), out=padded_rows(e_gradient))
    unpack_maps(torch.mm(x.t(), maps_gradient), to_x)
    unpack_maps(torch.mm(e.t(), edges_gradient), to_e)
    of_channel, of_numbers = channel_gradient.sum(0), factor_gradient.sum(0)
    return [x_gradient, e_gradient, *of_weights, of_channel, of_numbers, *[None] * 7]


_attention = Operator(_forward, kept_from=0, gradient=_gradient)
