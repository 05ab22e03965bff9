"""What stands between layers, number by number."""

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.choice import fusible
from lspe.ops.fused import dropout as fused_dropout
from lspe.ops.fused import tanh as fused_tanh
from lspe.ops.fused.layout import LANES


def dropout(x: Tensor, p: float, training: bool, seed: int | None = None) -> Tensor:
    """In training each entry of x becomes zero with probability p, the others x / (1 − p).

    Fused, PyTorch's generator gives only a seed, of which the numbers are made in parallel: they are reproducible, and
    others than those of ``torch.nn.functional.dropout``. With a ``seed`` they are those that it gave before.
    """
    if not training or p == 0:
        return x
    if seed is not None:
        return fused_dropout.plain_dropout(x, seed, p)[0]
    if x.dim() == 2 and 0 < p <= 1 and fusible(x):
        return fused_dropout.dropout(x, p, *fused_dropout.draw_seeds(1))
    return F.dropout(x, p, training)


def tanh_residual(x: Tensor, residual: Tensor | None) -> Tensor:
    """residual + tanh(x), ``[rows, d]``; tanh(x) alone without it."""
    same = residual is None or residual.shape == x.shape
    if x.dim() == 2 and x.size(1) >= LANES and same and fusible(x, residual):
        return fused_tanh.tanh_residual(x, residual)
    return torch.tanh(x) if residual is None else residual + torch.tanh(x)
