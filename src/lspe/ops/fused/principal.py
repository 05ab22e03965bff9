"""PNA's aggregation in C; :class:`lspe.nn.PrincipalAggregation` has the equations."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.edges import Edges
from lspe.ops.fused.layout import empty_rows, padded_rows, padded_width, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator

AGGREGATORS = ("mean", "sum", "max", "min", "std")
"""In the order of ``enum`` in csrc/principal.c."""


def principal_aggregation(
    x: Tensor,
    at_edge: Tensor,
    maps: Sequence[Tensor],
    scale: Tensor,
    edges: Edges,
    aggregators: Sequence[str],
    plain: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """``plain(x, at_edge)``, in C. The maps are weight and bias of the messages M, then of the update U, by towers."""
    kinds = torch.tensor([AGGREGATORS.index(name) for name in aggregators])
    order = (edges.edge_index, *edges.by_target, *edges.by_source)
    (out,) = _aggregation(x, at_edge, *maps, scale, kinds, *order, plain=lambda x, at_edge, *_: (plain(x, at_edge),))
    assert out is not None
    return out


class _Sizes:
    """The sizes of a layer, and of the padded matrices that its maps are packed into.

    ``of_x`` ``[T · in, 3 · padded]``: what the messages get from their target, what from their source, what a node
    gives its own update. Towers stand as blocks on the diagonal, so that one product serves all of them.
    ``of_aggregates`` ``[T, row, mapped_row]``: one product per tower.
    """

    def __init__(self, x: Tensor, message: Tensor, scale: Tensor, kinds: Tensor) -> None:
        self.nodes = x.size(0)
        self.towers, self.out, _ = message.shape
        self.tower_in = x.size(1) // self.towers
        self.scalers, self.aggregators = scale.size(1), kinds.numel()
        self.padded = padded_width(self.towers * self.out)
        self.row = padded_width(self.aggregators * self.out)
        self.mapped_row = padded_width(self.scalers * self.out)

    def packed(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return (
            like.new_zeros(padded_width(self.towers * self.tower_in), 3 * self.padded),
            like.new_zeros(self.towers, self.row, self.mapped_row),
        )

    def pieces(
        self, message: Tensor, update: Tensor, of_x: Tensor, of_aggregates: Tensor
    ) -> list[tuple[Tensor, Tensor]]:
        """Parts of the maps beside their places in the packed matrices, as views of one shape."""
        part, out, tower_in = self.padded, self.out, self.tower_in
        step = (tower_in * of_x.size(1) + out, of_x.size(1), 1)
        blocks = [of_x.as_strided((self.towers, tower_in, out), step, part * number) for number in range(3)]
        to_source, to_target = message[:, :, : 2 * tower_in].split(tower_in, dim=2)
        of_self, of_all = update.tensor_split([tower_in], dim=2)
        in_row = of_aggregates[:, : self.aggregators * out, : self.scalers * out]
        return [
            (to_target.transpose(1, 2), blocks[0]),
            (to_source.transpose(1, 2), blocks[1]),
            (of_self.transpose(1, 2), blocks[2]),
            (
                of_all.unflatten(2, (self.scalers, -1)).permute(0, 3, 2, 1),
                in_row.unflatten(2, (self.scalers, out)),
            ),
        ]

    def bias(self, message: Tensor, update: Tensor) -> Tensor:
        bias = message.new_zeros(3, self.padded)
        bias[0, : self.towers * self.out] = message.flatten()
        bias[2, : self.towers * self.out] = update.flatten()
        return bias.flatten()


def _forward(
    x: Tensor,
    at_edge: Tensor,
    message: Tensor,
    message_bias: Tensor,
    update: Tensor,
    update_bias: Tensor,
    scale: Tensor,
    kinds: Tensor,
    edge_index: Tensor,
    in_start: Tensor,
    in_edge: Tensor,
    *_: Tensor,
) -> tuple[Tensor, ...]:
    """Beside the result, for the backward pass: the maps of nodes, the aggregates, the packed maps."""
    size = _Sizes(x, message, scale, kinds)
    native = library_for(x)
    shape = {"threads": threads(), "towers": size.towers, "width": size.out}
    packed = size.packed(x)
    for weight, place in size.pieces(message, update, *packed):
        place.copy_(weight)
    of_x, of_aggregates = packed
    node = torch.addmm(size.bias(message_bias, update_bias), x, of_x[: x.size(1)])
    aggregates = x.new_empty(size.towers, size.nodes, size.row)
    native.call(
        "principal_forward",
        **shape,
        kinds=kinds,
        edges={"nodes": size.nodes, "source": edge_index[0], "in_start": in_start, "in_edge": in_edge},
        node=node,
        edge=padded_rows(at_edge),
        aggregates=aggregates.flatten(0, 1),
    )
    mapped = torch.bmm(aggregates, of_aggregates)
    out = x.new_empty(size.nodes, size.towers * size.out)
    native.call("update_forward", **shape, scale=unit_rows(scale), node=node, mapped=mapped.flatten(0, 1), out=out)
    return out, node, aggregates, *packed


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    x, at_edge, message, _, update, _, scale, kinds, edge_index, *order = arguments
    node, aggregates, of_x, of_aggregates = kept
    gradient = gradients[0]
    assert gradient is not None
    size = _Sizes(x, message, scale, kinds)
    native = library_for(x)
    shape = {"threads": threads(), "towers": size.towers, "width": size.out}
    node_gradient, edge_gradient = torch.empty_like(node), empty_rows(at_edge, *at_edge.shape)
    mapped_gradient = x.new_empty(size.towers, size.nodes, size.mapped_row)
    native.call(
        "update_backward",
        **shape,
        scale=unit_rows(scale),
        gradient=unit_rows(gradient),
        node_gradient=node_gradient,
        mapped=mapped_gradient.flatten(0, 1),
    )
    aggregates_gradient = torch.bmm(mapped_gradient, of_aggregates.transpose(1, 2))
    orders = dict(zip(("in_start", "in_edge", "out_start", "out_edge"), order, strict=True))
    native.call(
        "principal_backward",
        **shape,
        kinds=kinds,
        edges={"nodes": size.nodes, "source": edge_index[0], **orders},
        node=node,
        edge=padded_rows(at_edge),
        aggregates_gradient=aggregates_gradient.flatten(0, 1),
        node_gradient=node_gradient,
        edge_gradient=padded_rows(edge_gradient),
    )
    x_gradient = empty_rows(x, *x.shape)
    of_message, of_update = torch.zeros_like(message), torch.empty_like(update)
    torch.mm(node_gradient, of_x.t(), out=padded_rows(x_gradient))
    of_rows = torch.bmm(aggregates.transpose(1, 2), mapped_gradient)
    for weight, place in size.pieces(of_message, of_update, torch.mm(x.t(), node_gradient), of_rows):
        weight.copy_(place)
    bias = node_gradient.sum(0).view(3, size.padded)[:, : size.towers * size.out]
    of_biases = [part.reshape(message.shape[:2]) for part in (bias[0], bias[2])]
    return [x_gradient, edge_gradient, of_message, of_biases[0], of_update, of_biases[1], *[None] * 7]


_aggregation = Operator(_forward, gradient=_gradient)
