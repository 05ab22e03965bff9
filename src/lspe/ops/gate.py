"""GatedGCN's convolution: soft attention over the edges of a node."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lspe.ops.choice import fusible
from lspe.ops.edges import Edges
from lspe.ops.fused.gate import fused_convolution
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
    if not fusible(h, e):
        return _plain(h, p, e, maps, edges)
    by_part = [maps.B1, maps.B2, maps.A1, maps.A2, maps.C2, maps.C1, maps.B3]
    weights = [None if linear is None else linear.weight for linear in by_part]
    biases = [None if linear is None else linear.bias for linear in by_part]
    order = (edges.edge_index.contiguous(), edges.cuts, *edges.by_target, *edges.by_source)
    h_new, p_new, eta_hat, *_ = fused_convolution(h, p, e, *weights, *biases, *order)
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
