"""Attention over all pairs of nodes of a graph, with separate weights for its edges and for the added pairs."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.nn.topology import Topology
from lspe.ops import Pairs, fusible
from lspe.ops.fused.attention import pair_attention
from lspe.ops.fused.edge_maps import map_edges

SCORE_LIMIT = 5.0
EPSILON = 1e-6


class PairAttention(nn.Module):
    r"""Multi-head attention over the full graph.

    .. math::
        \hat x_i = \Big\Vert_{k=1}^H \frac{\sum_{j \ne i} w_{ij}^k v_j^k}{\sum_{j \ne i} w_{ij}^k + \epsilon},
        \qquad w_{ij}^k = f_{ij} \exp(\mathrm{clamp}(A_{ij}^k, -5, 5)), \qquad
        A_{ij}^k = \begin{cases}
            {q_i^k}^T \mathrm{diag}(c_{ij}^k)\, k_j^k / \sqrt{d_k} & ij \in E \\
            {\bar q_i^k}{}^T \mathrm{diag}(\bar c_{ij}^k)\, \bar k_j^k / \sqrt{d_k} & ij \notin E
        \end{cases}

    with q = Q x, k = K x, v = V x and c = E e; barred, of pairs that are not edges, their own Q̄, K̄, Ē. Of these pairs
    those that are not listed share one embedding e, so c̄ scales the channels of q̄ and their scores are ordinary
    products; the listed ones are a sparse part, written over it. Graphs are padded to one size; memory is
    O(B · H · n²), or O(B · d · n²) where the pairs that are not listed have an embedding each.

    Args:
        in_dim: width of x: 2d for structure beside positions, else d.
        dim: d, width of the result, divisible by ``heads``.
        heads: H.

    Shapes:
        x ``[N, in_dim]``, e ``[E, d]`` → ``[N, d]``.

    """

    def __init__(self, in_dim: int, dim: int, heads: int) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"{heads} heads cannot share a width of {dim} evenly")
        self.heads = heads
        self.head_dim = dim // heads
        self.Q = nn.Linear(in_dim, dim, bias=False)
        self.K = nn.Linear(in_dim, dim, bias=False)
        self.V = nn.Linear(in_dim, dim, bias=False)
        self.E = nn.Linear(dim, dim, bias=False)
        self.Q_added = nn.Linear(in_dim, dim, bias=False)
        self.K_added = nn.Linear(in_dim, dim, bias=False)
        self.E_added = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor, e: Tensor, graph: Topology, f_real: Tensor, f_added: Tensor) -> Tensor:
        """``f_real`` and ``f_added``: the factor f of edges and of added pairs, scalars or ``[B, n_max, n_max]``."""
        pairs, maps = graph.pairs, self.maps()
        simple = self.is_simple(graph, f_real, f_added)
        if simple and fusible(x, e, graph.added_pair, f_real, f_added, maps=maps, bias=False):
            weights = [linear.weight for linear in maps[:5]]
            c, c_added = map_edges(e, self.E.weight), F.linear(graph.added_pair, self.E_added.weight)

            def attend(x: Tensor, c: Tensor, c_added: Tensor, *factors: Tensor) -> Tensor:
                return self.attend(x, c, c_added, pairs, *factors)

            return pair_attention(x, c, c_added, weights, (f_real, f_added), pairs, self.heads, plain=attend)
        c = self.E(e)
        if pairs.real is not None:
            c = torch.where(pairs.real.unsqueeze(-1), c, self.E_added(e))
        shared = graph.added_pair.dim() == 1
        c_added = self.E_added(graph.added_pair.unsqueeze(0)).squeeze(0) if shared else self.E_added(graph.added_pair)
        return self.attend(x, c, c_added, pairs, f_real, f_added)

    def maps(self) -> list[nn.Linear]:
        """Q, K, V, Q_added, K_added, E, E_added."""
        return [self.Q, self.K, self.V, self.Q_added, self.K_added, self.E, self.E_added]

    def is_simple(self, graph: Topology, f_real: Tensor, f_added: Tensor) -> bool:
        """Whether all edges are real, all other pairs alike, and matrices of factors need no gradient."""
        matrices_fixed = not (f_real.dim() and (f_real.requires_grad or f_added.requires_grad))
        alike = f_real.dim() == f_added.dim() and matrices_fixed
        return alike and graph.added_pair.dim() == 1 and graph.pairs.real is None

    def attend(self, x: Tensor, c: Tensor, c_added: Tensor, pairs: Pairs, f_real: Tensor, f_added: Tensor) -> Tensor:
        """``c`` of the listed pairs ``[E, d]``; ``c_added`` is c̄ of the others, ``[d]`` for all or ``[P, d]``."""
        if c_added.dim() == 1:
            q, k = self._heads(pairs.pad(self.Q_added(x) * c_added)), self._heads(pairs.pad(self.K_added(x)))
            w = self._weights(q @ k.transpose(-1, -2)) * pairs.unlisted.unsqueeze(1)
            w = w * (f_added.unsqueeze(1) if f_added.dim() else f_added)
        else:
            w = self._listed(x, c_added, pairs, pairs.unlisted_index, f_added, self.Q_added, self.K_added)
        edge_index, real = pairs.edges.edge_index, pairs.real
        if real is None:
            w = w + self._listed(x, c, pairs, edge_index, f_real, self.Q, self.K)
        else:
            w = w + self._listed(x, c[real], pairs, edge_index[:, real], f_real, self.Q, self.K)
            w = w + self._listed(x, c[~real], pairs, edge_index[:, ~real], f_added, self.Q_added, self.K_added)
        v = self._heads(pairs.pad(self.V(x))).to(w.dtype)
        out = w @ v / (w.sum(-1, keepdim=True) + EPSILON)
        return pairs.unpad(out.transpose(1, 2).flatten(2))

    def _listed(
        self, x: Tensor, c: Tensor, pairs: Pairs, edge_index: Tensor, factor: Tensor, Q: nn.Module, K: nn.Module
    ) -> Tensor:
        """``[B, H, n_max, n_max]``: weights of listed pairs, each with its own c ``[P, d]``, zero for all others."""
        j, i = edge_index
        product = K(x)[j] * Q(x)[i] * c
        where = pairs.pair_slot(edge_index)
        w = self._weights(product.unflatten(-1, (self.heads, -1)).sum(-1))
        w = w * (factor[where].unsqueeze(-1) if factor.dim() else factor)
        listed = w.new_zeros(pairs.num_graphs, pairs.max_nodes, pairs.max_nodes, self.heads)
        return listed.index_put(where, w, accumulate=True).permute(0, 3, 1, 2)

    def _heads(self, x: Tensor) -> Tensor:
        """``[B, n, d]`` → ``[B, H, n, d / H]``."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _weights(self, product: Tensor) -> Tensor:
        return torch.exp((product / math.sqrt(self.head_dim)).clamp(-SCORE_LIMIT, SCORE_LIMIT))
