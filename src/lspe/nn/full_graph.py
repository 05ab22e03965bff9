"""Layers of attention over the full graph, with a feed-forward part."""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.nn.attention import PairAttention
from lspe.nn.norm import BatchNorm
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.ops import dropout, tanh_residual


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
        The embedding of the pairs which ``edge_index`` does not list, one for all or one each, comes with the topology.

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
        self.dim = dim
        self.lspe = lspe
        self.dropout = dropout
        self.residual = residual

    @abstractmethod
    def pair_factors(self, graph: Topology, like: Tensor) -> tuple[Tensor, Tensor]:
        """Factors of edges and of added pairs, in the dtype and on the device of ``like``."""

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        check_streams(h, p, e, graph, dim=self.dim, edge_dim=self.dim, lspe=self.lspe)
        graph.pairs.check_edges()
        added = graph.added_pair
        if added.shape != (self.dim,) and added.shape != (graph.pairs.unlisted_index.size(1), self.dim):
            raise ValueError(
                f"the embedding of added pairs is {list(added.shape)}, but the layer takes [{self.dim}], or a row for "
                f"each of the {graph.pairs.unlisted_index.size(1)} pairs without an edge"
            )
        f_real, f_added = self.pair_factors(graph, h)
        node = torch.cat([h, p], dim=-1) if p is not None else h
        attention = self.attention_h(node, e, graph, f_real, f_added)
        attention = self.O(dropout(attention, self.dropout, self.training))
        h_bar = self.norm_attention(h + attention if self.residual else attention)
        forward = dropout(F.relu(self.W1(h_bar)), self.dropout, self.training)
        forward = self.W2(forward)
        h_new = self.norm_h(h_bar + forward if self.residual else forward)
        if p is None:
            return h_new, None, e
        attention = self.attention_p(p, e, graph, f_real, f_added)
        p_new = self.O_p(dropout(attention, self.dropout, self.training))
        return h_new, tanh_residual(p_new, p if self.residual else None), e
