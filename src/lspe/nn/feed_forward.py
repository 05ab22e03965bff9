"""A feed-forward block between layers, as Transformers have."""

from typing import Literal

import torch
from torch import Tensor, nn

from lspe.nn.norm import BatchNorm
from lspe.nn.topology import Topology
from lspe.ops import dropout

Normed = Literal["pre-norm", "post-norm"]


class FeedForward(nn.Module):
    r"""What each node makes of its own structure; positions and edges stay as they are.

    .. math::
        h_i' = \begin{cases}
            h_i + W_2\, \mathrm{ReLU}(W_1\, \mathrm{BN}(h_i)) & \text{pre-norm} \\
            \mathrm{BN}(h_i + W_2\, \mathrm{ReLU}(W_1 h_i)) & \text{post-norm}
        \end{cases}

    It is a layer as all others are, and has 4d² + 5d parameters.

    Args:
        dim: d.
        norm: where the normalisation stands.
        dropout: on the hidden layer of width 2d.

    Shapes:
        h ``[N, d]``, p, e → the same, p and e unchanged.

    """

    def __init__(self, dim: int, norm: Normed = "pre-norm", *, dropout: float = 0.0) -> None:
        super().__init__()
        self.W1 = nn.Linear(dim, 2 * dim)
        self.W2 = nn.Linear(2 * dim, dim)
        self.norm_h = BatchNorm(dim)
        self.norm = norm
        self.dropout = dropout

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        return self.nodes(h), p, e

    def nodes(self, h: Tensor) -> Tensor:
        """``[N, d]`` → ``[N, d]``."""
        if self.norm == "pre-norm":
            return h + self._mlp(self.norm_h(h))
        return self.norm_h(h + self._mlp(h))

    def _mlp(self, h: Tensor) -> Tensor:
        return self.W2(dropout(torch.relu(self.W1(h)), self.dropout, self.training))
