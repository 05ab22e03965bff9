"""Normalisation that also takes the smallest batches."""

import torch
from torch import Tensor, nn

from lspe.ops import batch_norm


class BatchNorm(nn.BatchNorm1d):
    """``nn.BatchNorm1d`` for any number of rows, and with what stands around it in a layer.

    Fewer than two rows (a batch of one-atom molecules has no edges, a single such molecule has one node) have
    no variance: they are normalised by the running statistics, in training too, and do not change them.

    Shapes:
        x ``[rows, d]``, ``scale`` ``[rows, 1]``, ``residual`` ``[rows, d]`` →
        residual + ReLU(BN(scale · x)) ``[rows, d]``; each of the three is left out where it is not asked for.

    """

    def forward(
        self, x: Tensor, *, scale: Tensor | None = None, relu: bool = False, residual: Tensor | None = None
    ) -> Tensor:
        batch_statistics = self.training and x.size(0) >= 2
        if batch_statistics:
            self.num_batches_tracked.add_(1)  # type: ignore[union-attr]
        return batch_norm(self, x, scale=scale, relu=relu, residual=residual, batch_statistics=batch_statistics)


def center_and_normalize(p: Tensor, batch: Tensor, num_graphs: int, eps: float = 1e-6) -> Tensor:
    r"""Per graph and column: mean zero and norm one.

    .. math:: \tilde p = p - \mathrm{mean}(p), \qquad p' = \tilde p / \sqrt{\lVert \tilde p \rVert^2 + \epsilon}

    A column that is constant in a graph, as any column of a one-node graph is, becomes zero.

    Args:
        p: ``[N, k]``.
        batch: ``[N]``, the graph of each node.
        num_graphs: B.
        eps: under the root, so that value and gradient stay finite.

    """
    zeros = p.new_zeros(num_graphs, p.size(1))
    count = torch.bincount(batch, minlength=num_graphs).clamp(min=1).unsqueeze(-1).to(p.dtype)
    p = p - (zeros.index_add(0, batch, p) / count)[batch]
    norm = torch.sqrt(zeros.index_add(0, batch, p * p) + eps)
    return p / norm[batch]
