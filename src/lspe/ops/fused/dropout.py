"""Dropout in C: PyTorch's own draws its numbers one by one, which costs more than the layers it stands between."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.fused.layout import unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator


def draw_seeds(count: int) -> list[int]:
    """What PyTorch's generator gives; all numbers are made of it."""
    seeds: list[int] = torch.randint(2**62, (count,)).tolist()
    return seeds


def dropout(x: Tensor, p: float, seed: int) -> Tensor:
    """As :func:`lspe.ops.dropout` in training, for ``[rows, d]``."""
    (y,) = _dropout(x, seed, p, plain=plain_dropout)
    assert y is not None
    return y


def plain_dropout(x: Tensor, seed: int, p: float) -> tuple[Tensor]:
    """The same numbers: they are a function of the seed and the place alone."""
    with torch._C._DisableFuncTorch():
        (mask,) = _forward(torch.ones(x.shape, dtype=x.dtype), seed, p)
    return (x * mask,)


def _forward(x: Tensor, seed: int, p: float) -> list[Tensor]:
    y = x.new_empty(x.shape)
    library_for(x).call("drop", threads=threads(), seed=seed, p=p, x=unit_rows(x), out=y)
    return [y]


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    _, seed, p = arguments
    gradient = gradients[0]
    assert gradient is not None
    return [*_forward(gradient, seed, p), None, None]


_dropout = Operator(_forward, gradient=_gradient)
