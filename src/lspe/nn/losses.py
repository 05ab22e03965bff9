"""The positional loss: learned positions as a coordinate system of the graph."""

from typing import Literal, get_args

import torch
from torch import Tensor

Scaling = Literal["paper", "released"]


def positional_loss(
    p: Tensor,
    edge_index: Tensor,
    batch: Tensor,
    num_graphs: int,
    *,
    weight: float,
    scaling: Scaling = "paper",
) -> Tensor:
    r"""Laplacian eigenvector loss of the final positions.

    .. math::
        \mathrm{Loss}_{\mathrm{LapEig}}(p) = \frac{1}{k} \mathrm{trace}(p^T \Delta p)
            + \frac{\lambda}{k} \lVert p^T p - I_k \rVert_F^2, \qquad \Delta = I - D^{-1/2} A D^{-1/2}

    ``paper``: this, averaged over the graphs. ``released``: as the published rows were made: the sums over the
    batch divided by k · B · N, and no gradient through the λ term. The trace needs only the edges:
    :math:`\mathrm{trace}(p^T \Delta p) = \sum_i |p_i|^2 - \sum_{ij \in E} p_i \cdot p_j / \sqrt{D_i D_j}`.

    Args:
        p: ``[N, k]``, centred and of unit norm in each graph.
        edge_index: ``[2, E]``, both directions of each edge.
        batch: ``[N]``, the graph of each node.
        num_graphs: B.
        weight: λ.
        scaling: ``paper`` or ``released``.

    Returns:
        A scalar.

    """
    if scaling not in get_args(Scaling):
        raise ValueError(f"scaling {scaling!r}: choose 'paper' or 'released'")
    num_nodes, k = p.shape
    trace = _laplacian_trace(p, edge_index)
    gram = p.new_zeros(num_graphs, k, k).index_add(0, batch, p.unsqueeze(2) * p.unsqueeze(1))
    off_orthogonal = (gram - torch.eye(k, dtype=p.dtype, device=p.device)).square().sum()
    if scaling == "paper":
        return (trace + weight * off_orthogonal) / (k * num_graphs)
    return (trace + weight * off_orthogonal.detach()) / (k * num_graphs * num_nodes)


def _laplacian_trace(p: Tensor, edge_index: Tensor) -> Tensor:
    source, target = edge_index
    degree = torch.bincount(target, minlength=p.size(0)).to(p.dtype).clamp(min=1)
    scaled = p * degree.rsqrt().unsqueeze(-1)
    return p.square().sum() - (scaled[source] * scaled[target]).sum()
