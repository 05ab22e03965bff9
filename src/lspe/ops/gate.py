"""GatedGCN's soft attention over the edges of a node."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lspe.ops.scatter import scatter_sum

EPSILON = 1e-6


def gated_aggregate(
    at_target: Tensor,
    at_source: Tensor,
    at_edge: Tensor,
    values: Sequence[Tensor],
    edge_index: Tensor,
) -> tuple[Tensor, list[Tensor]]:
    r"""Gate the edges, and sum what they carry.

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
