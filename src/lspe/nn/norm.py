"""Normalisation that also takes the smallest batches."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class BatchNorm(nn.BatchNorm1d):
    """``nn.BatchNorm1d`` for any number of rows, ``[rows, d]`` → ``[rows, d]``.

    Fewer than two rows (a batch of one-atom molecules has no edges, a single such molecule has one node) have
    no variance: they are normalised by the running statistics, in training too, and do not change them.
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) >= 2:
            return super().forward(x)
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)


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
