"""Attention over all pairs of nodes of a graph, with separate weights for its edges and for the added pairs."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.choice import fusible
from lspe.ops.fused.attention import fused_attention
from lspe.ops.pairs import Pairs

SCORE_LIMIT = 5.0
EPSILON = 1e-6


class PairMaps(NamedTuple):
    """The weights of an attention: of edges (or of all pairs: V), and of added pairs. None has a bias."""

    Q: Tensor
    K: Tensor
    V: Tensor
    E: Tensor
    Q_added: Tensor
    K_added: Tensor
    E_added: Tensor


def pair_attention(
    x: Tensor,
    e: Tensor,
    e_added: Tensor,
    maps: PairMaps,
    factors: tuple[Tensor, Tensor],
    pairs: Pairs,
    heads: int,
) -> Tensor:
    r"""Multi-head attention over the full graph.

    .. math::
        \hat x_i = \Big\Vert_{k=1}^H \frac{\sum_{j \ne i} w_{ij}^k v_j^k}{\sum_{j \ne i} w_{ij}^k + \epsilon},
        \qquad w_{ij}^k = f_{ij} \exp(\mathrm{clamp}(A_{ij}^k, -5, 5)), \qquad
        A_{ij}^k = \begin{cases}
            {q_i^k}^T \mathrm{diag}(c_{ij}^k)\, k_j^k / \sqrt{d_k} & ij \in E \\
            {\bar q_i^k}{}^T \mathrm{diag}(\bar c_{ij}^k)\, \bar k_j^k / \sqrt{d_k} & ij \notin E
        \end{cases}

    with c = E e and c̄ = Ē e. The pairs that are not listed share one embedding e, so c̄ scales the channels of
    q̄ and their scores are ordinary products; the listed ones are a sparse part, written over it.

    Plain, graphs are padded to one size and memory is O(B · H · n²). Fused, nothing is padded, and no more than a row
    of weights is kept: the backward pass computes them again.

    Args:
        x: ``[N, in_dim]``.
        e: ``[E, d]``.
        e_added: ``[d]``, the embedding that all pairs share which are not listed.
        maps: the weights, ``[d, in_dim]`` and ``[d, d]``.
        factors: f of edges and of added pairs, each a scalar or ``[B, n_max (target), n_max (source)]``.
        pairs: of N nodes.
        heads: H, a divisor of d.

    Returns:
        ``[N, d]``.

    """
    matrices = [f for f in factors if f.dim()]
    if pairs.real is not None or any(f.requires_grad for f in matrices) or not fusible(x, e, maps.Q, *factors):
        return _plain(x, e, e_added, maps, factors, pairs, heads)
    numbers = torch.stack([f if not f.dim() else f.new_ones(()) for f in factors])
    real, added = (f.contiguous() if f.dim() else None for f in factors)
    order = (pairs.edges.edge_index.contiguous(), *pairs.edges.by_target)
    channel = F.linear(e_added, maps.E_added)
    weights = (maps.Q, maps.K, maps.V, maps.Q_added, maps.K_added, maps.E)
    out: Tensor = fused_attention(x, e, *weights, channel, numbers, real, added, pairs.graph_start, *order, heads)[0]
    return out


def _plain(
    x: Tensor,
    e: Tensor,
    e_added: Tensor,
    maps: PairMaps,
    factors: tuple[Tensor, Tensor],
    pairs: Pairs,
    heads: int,
) -> Tensor:
    f_real, f_added = factors

    def split_heads(y: Tensor) -> Tensor:
        """``[B, n, d]`` → ``[B, H, n, d / H]``."""
        return y.unflatten(-1, (heads, -1)).transpose(1, 2)

    def weights_of(product: Tensor) -> Tensor:
        head_dim = maps.V.size(0) // heads
        return torch.exp((product / math.sqrt(head_dim)).clamp(-SCORE_LIMIT, SCORE_LIMIT))

    def listed_weights(mask: Tensor | None, factor: Tensor, *of_listed: Tensor) -> Tensor:
        """``[B, H, n_max, n_max]``: weights of listed pairs, each with its own e, zero for all others."""
        edge_index = pairs.edges.edge_index if mask is None else pairs.edges.edge_index[:, mask]
        source, target = edge_index
        Q, K, E = of_listed
        product = F.linear(x, K)[source] * F.linear(x, Q)[target] * F.linear(e if mask is None else e[mask], E)
        where = pairs.pair_slot(edge_index)
        weights = weights_of(product.unflatten(-1, (heads, -1)).sum(-1))
        weights = weights * (factor[where].unsqueeze(-1) if factor.dim() else factor)
        listed = x.new_zeros(pairs.num_graphs, pairs.max_nodes, pairs.max_nodes, heads)
        return listed.index_put(where, weights, accumulate=True).permute(0, 3, 1, 2)

    q = split_heads(pairs.pad(F.linear(x, maps.Q_added) * F.linear(e_added, maps.E_added)))
    k = split_heads(pairs.pad(F.linear(x, maps.K_added)))
    w = weights_of(q @ k.transpose(-1, -2)) * pairs.unlisted.unsqueeze(1)
    w = w * (f_added.unsqueeze(1) if f_added.dim() else f_added)
    w = w + listed_weights(pairs.real, f_real, maps.Q, maps.K, maps.E)
    if pairs.real is not None:
        w = w + listed_weights(~pairs.real, f_added, maps.Q_added, maps.K_added, maps.E_added)
    v = split_heads(pairs.pad(F.linear(x, maps.V)))
    out = w @ v / (w.sum(-1, keepdim=True) + EPSILON)
    return pairs.unpad(out.transpose(1, 2).flatten(2))
