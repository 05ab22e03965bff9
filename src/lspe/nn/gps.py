"""GPS and GPS-LSPE: any conv beside attention over all nodes of a graph (Rampášek et al. 2022), with positions."""

import math

import torch
from torch import Tensor, nn

from lspe.nn.feed_forward import FeedForward
from lspe.nn.norm import BatchNorm
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.nn.wrap import Call
from lspe.ops import Pairs, dropout, tanh_residual


class GraphAttention(nn.Module):
    r"""Multi-head attention of each node over all nodes of its graph.

    .. math::
        \hat x_i = \Big\Vert_{k=1}^H \sum_{j} \mathrm{softmax}_j\big({q_i^k}^T k_j^k / \sqrt{d_k}\big)\, v_j^k

    with q = Q x, k = K x and v = V x. Graphs are padded to one size; memory is O(B · H · n²).

    Shapes:
        x ``[N, in_dim]`` → ``[N, dim]``.

    """

    def __init__(self, in_dim: int, dim: int, heads: int) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"{heads} heads cannot share a width of {dim} evenly")
        self.heads = heads
        self.Q = nn.Linear(in_dim, dim)
        self.K = nn.Linear(in_dim, dim)
        self.V = nn.Linear(in_dim, dim)

    def forward(self, x: Tensor, pairs: Pairs) -> Tensor:
        q, k, v = (self._heads(pairs.pad(linear(x))) for linear in (self.Q, self.K, self.V))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        filled = torch.arange(pairs.max_nodes, device=x.device) < pairs.graph_sizes.unsqueeze(-1)
        # no infinity, with which a graph without nodes would be NaN
        scores = scores.masked_fill(~filled[:, None, None, :], torch.finfo(scores.dtype).min)
        out = torch.softmax(scores, dim=-1) @ v
        return pairs.unpad(out.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        """``[B, n, d]`` → ``[B, H, n, d / H]``."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class GPS(nn.Module):
    r"""A conv and attention side by side, then a feed-forward block; positions learn through both too.

    .. math::
        \bar h_i &= \mathrm{BN}\Big(h_i + f_h\Big(\begin{bmatrix} h_i \\ p_i \end{bmatrix},
            \Big\{\begin{bmatrix} h_j \\ p_j \end{bmatrix}\Big\}_{j \in \mathcal{N}_i}, e_{ij}\Big)\Big)
            + \mathrm{BN}\Big(h_i + O\, \mathrm{Attention}\Big(\begin{bmatrix} h \\ p \end{bmatrix}\Big)_i\Big) \\
        h_i' &= \mathrm{BN}(\bar h_i + W_2\, \mathrm{ReLU}(W_1 \bar h_i)) \\
        p_i' &= p_i + \tanh(f_p(p_i, \{p_j\}_{j \in \mathcal{N}_i}, e_{ij}) + O_p\, \mathrm{Attention}_p(p)_i)

    Without positions, ``conv_p=None``, f_h and the attention see h alone and the last line is left out. Beside its
    convs it has 8d² + 13d parameters without positions, and 15d² + 17d with them.

    Args:
        conv_h: f_h, a PyG conv 2d → d (see :class:`~lspe.nn.LSPE` for how it is called).
        conv_p: f_p, a PyG conv d → d, or ``None``.
        dim: d, divisible by ``heads``.
        heads: H.
        join: a module 2d → d applied to [h, p] before ``conv_h``, if that keeps the width d.
        dropout: on what conv and attention give, and inside the feed-forward block.
        residual: add the input of each stream to its output.

    Shapes:
        h ``[N, d]``, p ``[N, d]`` (``None`` without ``conv_p``), e ``[E, edge_dim]`` → the same, e unchanged.

    """

    def __init__(
        self,
        conv_h: nn.Module,
        conv_p: nn.Module | None,
        dim: int,
        heads: int,
        *,
        join: nn.Module | None = None,
        dropout: float = 0.0,
        residual: bool = True,
    ) -> None:
        super().__init__()
        self.lspe = conv_p is not None
        self.join = join
        self.conv_h = conv_h
        self.conv_p = conv_p
        self.call_h = Call(conv_h)
        self.call_p = None if conv_p is None else Call(conv_p)
        self.attention_h = GraphAttention(2 * dim if self.lspe else dim, dim, heads)
        self.O = nn.Linear(dim, dim)
        if self.lspe:
            self.attention_p = GraphAttention(dim, dim, heads)
            self.O_p = nn.Linear(dim, dim)
        self.norm_conv = BatchNorm(dim)
        self.norm_attention = BatchNorm(dim)
        self.feed_forward = FeedForward(dim, "post-norm", dropout=dropout)
        self.dim = dim
        self.dropout = dropout
        self.residual = residual

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        check_streams(h, p, e, graph, dim=self.dim, edge_dim=None, lspe=self.lspe)
        hp = h if p is None else torch.cat([h, p], dim=-1)
        near = self._drop(self.call_h(self.conv_h, hp if self.join is None else self.join(hp), e, graph, like=h))
        far = self._drop(self.O(self.attention_h(hp, graph.pairs)))
        if self.residual:
            near, far = h + near, h + far
        h_new = self.feed_forward.nodes(self.norm_conv(near) + self.norm_attention(far))
        if p is None or self.conv_p is None or self.call_p is None:
            return h_new, None, e
        near = self.call_p(self.conv_p, p, e, graph, like=p)
        p_new = self._drop(near + self.O_p(self.attention_p(p, graph.pairs)))
        return h_new, tanh_residual(p_new, p if self.residual else None), e

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
