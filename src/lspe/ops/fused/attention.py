"""Attention over all pairs in C; :class:`lspe.nn.PairAttention` has the equations.

Nothing is padded to the largest graph. Of the weights only their sums and those of the edges are kept: the backward
pass computes the others again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.fused.layout import empty_rows, padded_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator
from lspe.ops.fused.packing import Columns, pack_maps, unpack_maps
from lspe.ops.pairs import Pairs


def pair_attention(
    x: Tensor,
    c: Tensor,
    c_added: Tensor,
    weights: Sequence[Tensor],
    factors: tuple[Tensor, Tensor],
    pairs: Pairs,
    heads: int,
    plain: Callable[..., Tensor],
) -> Tensor:
    """``plain(x, c, c_added, *factors)``, in C. The weights are those of Q, K, V, Q_added, K_added."""
    are_matrices = factors[0].dim() > 0
    numbers = factors[0].new_ones(2) if are_matrices else torch.stack(factors)
    real, added = (f.flatten(0, 1).contiguous() if are_matrices else None for f in factors)
    order = (pairs.edges.edge_index, *pairs.edges.by_target)

    def twin(x: Tensor, c: Tensor, *others: Any) -> tuple[Tensor]:
        c_added, numbers = others[5], others[6]
        return (plain(x, c, c_added, *(factors if are_matrices else numbers.unbind())),)

    arguments = (x, c, *weights, c_added, numbers, real, added, pairs.graph_start, *order, heads)
    (out,) = _attention(*arguments, plain=twin)
    assert out is not None
    return out


def _forward(x: Tensor, c: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """``others``: the weights Q, K, V, Q_added, K_added, then as :func:`_graphs` takes them.

    Beside the result, for the backward pass: the five maps of each node side by side, the packed weights, what edges
    weigh and the sums of what all pairs weigh.
    """
    weights, graphs, heads = others[:5], others[5:], others[-1]
    of_x = pack_maps([Columns(weight) for weight in weights], x)
    maps = torch.mm(x, of_x[: x.size(1)])
    out = empty_rows(x, x.size(0), c.size(1))
    powers, totals = x.new_empty(c.size(0), heads), x.new_empty(x.size(0), heads)
    library_for(x).call(
        "attention_forward",
        **_graphs(x, *graphs),
        maps=maps,
        edge_maps=padded_rows(c),
        powers=powers,
        totals=totals,
        out=padded_rows(out),
    )
    return out, maps, of_x, powers, totals


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


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Of x, c, the weights, c_added and the two numbers."""
    x, c, *_, c_added, numbers, real, added, graph_start, edge_index, in_start, in_edge, heads = arguments
    out, maps, of_x, powers, totals = kept
    gradient = gradients[0]
    assert gradient is not None
    graphs, width = graph_start.numel() - 1, c_added.numel()
    # the padding between maps stays zero
    maps_gradient, c_gradient = torch.zeros_like(maps), empty_rows(c, *c.shape)
    of_channel, of_factor = x.new_empty(graphs, width), x.new_empty(graphs * heads, 2)
    library_for(x).call(
        "attention_backward",
        **_graphs(x, c_added, numbers, real, added, graph_start, edge_index, in_start, in_edge, heads),
        maps=maps,
        edge_maps=padded_rows(c),
        powers=powers,
        totals=totals,
        out=padded_rows(out),
        gradient=padded_rows(gradient),
        maps_gradient=maps_gradient,
        edge_maps_gradient=padded_rows(c_gradient),
        channel_gradient=of_channel,
        factor_gradient=of_factor,
    )
    x_gradient = empty_rows(x, *x.shape)
    of_weights = [x.new_empty(width, x.size(1)) for _ in range(5)]
    torch.mm(maps_gradient, of_x.t(), out=padded_rows(x_gradient))
    unpack_maps(torch.mm(x.t(), maps_gradient), [Columns(weight) for weight in of_weights])
    return [x_gradient, c_gradient, *of_weights, of_channel.sum(0), of_factor.sum(0), *[None] * 7]


_attention = Operator(_forward, kept_from=0, gradient=_gradient)
