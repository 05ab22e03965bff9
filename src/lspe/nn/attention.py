"""Attention over all pairs of nodes of a graph, with separate weights for its edges and for the added pairs."""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.nn.norm import BatchNorm
from lspe.nn.topology import Topology
from lspe.ops import PairMaps, dropout, pair_attention, tanh_residual


class PairAttention(nn.Module):
    """Multi-head attention over the full graph: the maps of :func:`lspe.ops.pair_attention`, which has the equations.

    The pairs that are not edges share one embedding e.

    Args:
        in_dim: width of x: 2d for structure beside positions, else d.
        dim: d, width of the result, divisible by ``heads``.
        heads: H.

    Shapes:
        x ``[N, in_dim]``, e ``[E, d]``, e_added ``[d]`` → ``[N, d]``.

    """

    def __init__(self, in_dim: int, dim: int, heads: int) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"{heads} heads cannot share a width of {dim} evenly")
        self.heads = heads
        self.Q = nn.Linear(in_dim, dim, bias=False)
        self.K = nn.Linear(in_dim, dim, bias=False)
        self.V = nn.Linear(in_dim, dim, bias=False)
        self.E = nn.Linear(dim, dim, bias=False)
        self.Q_added = nn.Linear(in_dim, dim, bias=False)
        self.K_added = nn.Linear(in_dim, dim, bias=False)
        self.E_added = nn.Linear(dim, dim, bias=False)

    def forward(
        self, x: Tensor, e: Tensor, e_added: Tensor, graph: Topology, f_real: Tensor, f_added: Tensor
    ) -> Tensor:
        """``f_real`` and ``f_added``: the factor f of edges and of added pairs, scalars or ``[B, n_max, n_max]``."""
        linears = (self.Q, self.K, self.V, self.E, self.Q_added, self.K_added, self.E_added)
        maps = PairMaps(*(linear.weight for linear in linears))
        return pair_attention(x, e, e_added, maps, (f_real, f_added), graph.pairs, self.heads)


class FullGraphLayer(nn.Module):
    r"""What SAN and GraphiT have in common; they differ in the factors of the pairs.

    .. math::
        \bar h_i &= \mathrm{BN}\Big(h_i + O\, \mathrm{Attention}\Big(
            \begin{bmatrix} h \\ p \end{bmatrix}\Big)_i\Big) \\
        h_i' &= \mathrm{BN}(\bar h_i + W_2\, \mathrm{ReLU}(W_1 \bar h_i)) \\
        p_i' &= p_i + \tanh(O_p\, \mathrm{Attention}_p(p)_i)

    Args:
        dim: d, width of h, p and e.
        heads: H.
        lspe: learn positions p beside the structure h.
        dropout: on the attention's result and inside the feed-forward part.
        residual: add the input of each stream to its output.

    Shapes:
        h ``[N, d]``, p ``[N, d]`` (``None`` without ``lspe``), e ``[E, d]`` → the same, e unchanged.
        ``e_added`` ``[d]`` is the embedding that all pairs share which ``edge_index`` does not list.

    """

    def __init__(
        self, dim: int, heads: int, *, lspe: bool = False, dropout: float = 0.0, residual: bool = True
    ) -> None:
        super().__init__()
        self.attention_h = PairAttention(2 * dim if lspe else dim, dim, heads)
        self.O = nn.Linear(dim, dim)
        self.W1 = nn.Linear(dim, 2 * dim)
        self.W2 = nn.Linear(2 * dim, dim)
        self.norm_attention = BatchNorm(dim)
        self.norm_h = BatchNorm(dim)
        if lspe:
            self.attention_p = PairAttention(dim, dim, heads)
            self.O_p = nn.Linear(dim, dim)
        self.lspe = lspe
        self.dropout = dropout
        self.residual = residual

    @abstractmethod
    def pair_factors(self, graph: Topology, like: Tensor) -> tuple[Tensor, Tensor]:
        """Factors of edges and of added pairs, in the dtype and on the device of ``like``."""

    def forward(
        self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology, e_added: Tensor
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        f_real, f_added = self.pair_factors(graph, h)
        node = torch.cat([h, p], dim=-1) if p is not None else h
        attention = self.attention_h(node, e, e_added, graph, f_real, f_added)
        attention = self.O(dropout(attention, self.dropout, self.training))
        h_bar = self.norm_attention(h + attention if self.residual else attention)
        forward = dropout(F.relu(self.W1(h_bar)), self.dropout, self.training)
        forward = self.W2(forward)
        h_new = self.norm_h(h_bar + forward if self.residual else forward)
        if p is None:
            return h_new, None, e
        attention = self.attention_p(p, e, e_added, graph, f_real, f_added)
        p_new = self.O_p(dropout(attention, self.dropout, self.training))
        return h_new, tanh_residual(p_new, p if self.residual else None), e
