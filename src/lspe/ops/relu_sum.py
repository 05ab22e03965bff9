"""GINE's sum of messages, without a copy of every edge's message for each step on the way."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.edges import Edges
from lspe.ops.fused.operator import Operator
from lspe.ops.scatter import scatter_sum


def relu_sum(x: Tensor, e: Tensor, weight: Tensor, bias: Tensor, edges: Edges) -> Tensor:
    r"""``[N, d]``: :math:`\sum_{j \in \mathcal{N}_i} \mathrm{ReLU}(x_j + W e_{ij} + b)`.

    All that a message goes through happens in one place, which is all that is kept for the gradient.

    Shapes:
        x ``[N, d]``, e ``[E, edge_dim]``, W ``[d, edge_dim]``, b ``[d]``.

    """
    order = (edges.edge_index, *edges.by_target, *edges.by_source)
    (out,) = _relu_sum(x, e, weight, bias, *order, plain=_plain)
    assert out is not None
    return out


def _plain(x: Tensor, e: Tensor, weight: Tensor, bias: Tensor, edge_index: Tensor, *_: Tensor) -> tuple[Tensor]:
    source, target = edge_index
    message = torch.relu(x.index_select(0, source) + F.linear(e, weight, bias))
    return (scatter_sum(message, target, x.size(0)),)


def _forward(
    x: Tensor, e: Tensor, weight: Tensor, bias: Tensor, edge_index: Tensor, start: Tensor, edge: Tensor, *_: Tensor
) -> list[Tensor]:
    message = (x + bias).index_select(0, edge_index[0]).addmm_(e, weight.T).relu_()
    return [_sums(message, start, edge), message]


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    _, e, weight, _, edge_index, _, _, start, edge = arguments
    (message,) = kept
    assert gradients[0] is not None
    of_message = gradients[0].index_select(0, edge_index[1])
    torch.ops.aten.threshold_backward.grad_input(of_message, message, 0, grad_input=of_message)
    of_x = _sums(of_message, start, edge)
    return [of_x, of_message @ weight, (e.T @ of_message).T, of_x.sum(0), *[None] * 5]


def _sums(message: Tensor, start: Tensor, edge: Tensor) -> Tensor:
    """``[N, width]``: the sum over ``edge[start[i]:start[i + 1]]`` of each node i."""
    if not message.size(0):
        return message.new_zeros(start.numel() - 1, message.size(1))
    return torch.embedding_bag(message, edge, start, False, 0, False, None, True)[0]


_relu_sum = Operator(_forward, gradient=_gradient)
