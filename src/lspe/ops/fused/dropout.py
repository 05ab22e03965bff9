"""Dropout in C: PyTorch's own draws its numbers one by one, which costs more than the layers it stands between."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.fused.layout import unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator, without_gradient


def dropout(x: Tensor, p: float) -> Tensor:
    """As :func:`lspe.ops.dropout` in training, for ``[rows, d]``; PyTorch's generator gives a seed and no more."""
    (y,) = _dropout(x, torch.randint(2**62, (1,)), p, plain=_plain)
    assert y is not None
    return y


def _plain(x: Tensor, seed: Tensor, p: float) -> tuple[Tensor]:
    """The same numbers: they are a function of the seed and the place alone."""
    (mask,) = _forward(torch.ones(x.shape, dtype=x.dtype), seed, p)
    return (x * mask,)


def _forward(x: Tensor, seed: Tensor, p: float) -> list[Tensor]:
    y = x.new_empty(x.shape)
    library_for(x).call("drop", threads=threads(), seed=int(seed), p=p, x=unit_rows(x), out=y)
    return [y]


def _forward_like(x: Tensor, seed: Tensor, p: float) -> list[Tensor]:
    return [x.new_empty(x.shape)]


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> tuple[Tensor, None, None]:
    _, seed, p = arguments
    return _dropout_backward(gradients[0], seed, p), None, None


_dropout_backward = without_gradient(
    "dropout_backward(Tensor gradient, Tensor seed, float p) -> Tensor",
    lambda *arguments: _forward(*arguments)[0],
    lambda *arguments: _forward_like(*arguments)[0],
)
_dropout = Operator("dropout(Tensor x, Tensor seed, float p) -> Tensor", _forward, _forward_like, gradient=_gradient)
