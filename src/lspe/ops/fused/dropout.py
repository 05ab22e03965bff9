"""Dropout: PyTorch's own draws its numbers one by one, and on a CPU costs more than the layers it stands between."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.choice import fusible
from lspe.ops.fused.layout import row_step, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import operator


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """In training each entry of x ``[rows, d]`` becomes zero with probability p, the others x / (1 − p).

    Fused, PyTorch's generator gives only a seed, of which the numbers are made in parallel: they are reproducible, and
    others than those of ``torch.nn.functional.dropout``.
    """
    if not training or p == 0:
        return x
    if x.dim() != 2 or not fusible(x):
        return F.dropout(x, p, training)
    y: Tensor = _dropout(x, torch.randint(2**62, (1,)), p)
    return y


def _forward(x: Tensor, seed: Tensor, p: float) -> Tensor:
    x, y = unit_rows(x), x.new_empty(x.shape)
    library_for(x).dropout(threads(), *x.shape, x, row_step(x), seed, torch.tensor(p, dtype=torch.float64), y)
    return y


def _remember(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
    _, seed, ctx.p = inputs
    ctx.save_for_backward(seed)


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
    return _dropout(gradient, *ctx.saved_tensors, ctx.p), None, None


_dropout = operator(
    "dropout(Tensor x, Tensor seed, float p) -> Tensor",
    _forward,
    lambda x, seed, p: x.new_empty(x.shape),
    remember=_remember,
    gradient=_differentiate,
)
