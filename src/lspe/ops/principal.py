"""PNA's aggregates of the edges of a node, from one gather."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lspe.ops.scatter import scatter_max, scatter_min, scatter_sum

AGGREGATORS = ("mean", "sum", "max", "min", "std")
VARIANCE_FLOOR = 1e-5


def principal_aggregate(
    at_target: Tensor,
    at_source: Tensor,
    at_edge: Tensor,
    edge_index: Tensor,
    in_degree: Tensor,
    aggregators: Sequence[str],
) -> Tensor:
    r"""Aggregate the messages :math:`m_{ij} = a_i + b_j + c_{ij}` of each node i in several ways at once.

    What the target adds is the same for all its messages: it shifts mean, max and min by itself, the sum
    by in-degree times itself, and leaves the standard deviation as it is. So only b + c is gathered.
    The standard deviation is :math:`\sqrt{\mathrm{ReLU}(E[m^2] - E[m]^2) + 10^{-5}}`.
    A node without in-edges aggregates to zero.

    Args:
        at_target: a, ``[N, d]``.
        at_source: b, ``[N, d]``.
        at_edge: c, ``[E, d]``.
        edge_index: ``[2, E]``.
        in_degree: ``[N]``.
        aggregators: names out of :data:`AGGREGATORS`.

    Returns:
        ``[N, len(aggregators), d]``.

    """
    source, target = edge_index
    rows = at_target.size(0)
    message = at_source[source] + at_edge
    degree = in_degree.to(message.dtype).unsqueeze(-1)
    reached = degree > 0
    needs_sum = not {"mean", "sum", "std"}.isdisjoint(aggregators)
    total = scatter_sum(message, target, rows) if needs_sum else message
    mean = total / degree.clamp(min=1) if needs_sum else total

    def aggregate(name: str) -> Tensor:
        if name == "mean":
            return mean + at_target
        if name == "sum":
            return total + degree * at_target
        if name == "max":
            return scatter_max(message, target, rows) + at_target
        if name == "min":
            return scatter_min(message, target, rows) + at_target
        square = scatter_sum(message * message, target, rows) / degree.clamp(min=1)
        return torch.sqrt(torch.relu(square - mean * mean) + VARIANCE_FLOOR)

    zero = message.new_zeros(())
    return torch.stack([torch.where(reached, aggregate(name), zero) for name in aggregators], dim=1)
