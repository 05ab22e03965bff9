"""PNA's aggregation: several aggregates of the edges of a node at once."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lspe.ops.choice import fusible
from lspe.ops.edges import Edges
from lspe.ops.fused.principal import fused_aggregation
from lspe.ops.scatter import scatter_max, scatter_min, scatter_sum

AGGREGATORS = ("mean", "sum", "max", "min", "std")
"""In the order of ``enum`` in fused/csrc/principal.c."""
VARIANCE_FLOOR = 1e-5


class TowerMaps(NamedTuple):
    """M and U of T towers, all linear.

    Shapes:
        ``message`` ``[T, out, 2 · in + edge_dim]`` of [source, target, edge], ``message_bias`` ``[T, out]``,
        ``update`` ``[T, out, in + S · A · out]`` of [self, aggregates], ``update_bias`` ``[T, out]``. Of the
        aggregates' columns the scaler (S) varies slowest, then the aggregator (A), the channel fastest.

    """

    message: Tensor
    message_bias: Tensor
    update: Tensor
    update_bias: Tensor


def principal_aggregation(
    x: Tensor, e: Tensor, maps: TowerMaps, scale: Tensor, edges: Edges, aggregators: Sequence[str]
) -> Tensor:
    r"""Every tower's :math:`U(x_i, \bigoplus_j M(x_i, e_{ij}, x_j))`.

    M is applied per node before the gather; U before the scalers, which are one number a node.

    Args:
        x: ``[N, T · in]``, the towers' inputs side by side.
        e: ``[E, edge_dim]``.
        maps: M and U.
        scale: ``[N, S]``, the scalers' factor for each node.
        edges: of N nodes.
        aggregators: A names out of :data:`AGGREGATORS`.

    Returns:
        ``[N, T · out]``.

    """
    if not fusible(x, e, maps.message):
        return _plain(x, e, maps, scale, edges, aggregators)
    kinds = torch.tensor([AGGREGATORS.index(name) for name in aggregators])
    order = (edges.edge_index.contiguous(), *edges.by_target, *edges.by_source)
    out: Tensor = fused_aggregation(x, e, *maps, scale.contiguous(), kinds, *order)[0]
    return out


def _plain(x: Tensor, e: Tensor, maps: TowerMaps, scale: Tensor, edges: Edges, aggregators: Sequence[str]) -> Tensor:
    towers, tower_out, _ = maps.message.shape
    tower_in = x.size(1) // towers
    x = x.view(-1, towers, tower_in)
    to_source, to_target, to_edge = maps.message.split([tower_in, tower_in, e.size(1)], dim=-1)
    aggregated = principal_aggregate(
        _per_tower(x, to_target).flatten(1) + maps.message_bias.flatten(),
        _per_tower(x, to_source).flatten(1),
        e @ to_edge.flatten(0, 1).T,
        edges.edge_index,
        edges.in_degree,
        aggregators,
    )
    of_self, of_aggregates = maps.update.tensor_split([tower_in], dim=-1)
    of_aggregates = of_aggregates.unflatten(-1, (scale.size(1), -1))
    flat = aggregated.unflatten(-1, (towers, tower_out)).transpose(1, 2).flatten(2)
    out = _per_tower(x, of_self) + maps.update_bias
    for scaler in range(scale.size(1)):
        out = out + _per_tower(flat, of_aggregates[:, :, scaler]) * scale[:, scaler].view(-1, 1, 1)
    return out.flatten(1)


def _per_tower(x: Tensor, weight: Tensor) -> Tensor:
    """``[N, T, in]`` by ``[T, out, in]`` → ``[N, T, out]``."""
    return torch.bmm(x.transpose(0, 1), weight.transpose(1, 2)).transpose(0, 1)


def principal_aggregate(
    at_target: Tensor,
    at_source: Tensor,
    at_edge: Tensor,
    edge_index: Tensor,
    in_degree: Tensor,
    aggregators: Sequence[str],
) -> Tensor:
    r"""The aggregates of the messages :math:`m_{ij} = a_i + b_j + c_{ij}` alone, in plain PyTorch.

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
