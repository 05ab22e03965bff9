"""The position's activation with what it is added to, in C."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.fused.layout import row_step, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator, without_gradient


def tanh_residual(x: Tensor, residual: Tensor | None) -> Tensor:
    """As :func:`lspe.ops.tanh_residual`, for ``[rows, d]``."""
    (y,) = _tanh(x, residual, plain=_plain)
    assert y is not None
    return y


def _plain(x: Tensor, residual: Tensor | None) -> tuple[Tensor]:
    return (torch.tanh(x) if residual is None else residual + torch.tanh(x),)


def _forward(x: Tensor, residual: Tensor | None) -> list[Tensor]:
    y = x.new_empty(x.shape)
    other = None if residual is None else unit_rows(residual)
    library_for(x).call("tanh_forward", threads=threads(), x=unit_rows(x), other=other, out=y)
    return [y]


def _forward_like(x: Tensor, residual: Tensor | None) -> list[Tensor]:
    return [x.new_empty(x.shape)]


def _backward(gradient: Tensor, x: Tensor) -> Tensor:
    of_x = _backward_like(gradient, x)
    library_for(x).call("tanh_backward", threads=threads(), x=unit_rows(x), other=unit_rows(gradient), out=of_x)
    return of_x


def _backward_like(gradient: Tensor, x: Tensor) -> Tensor:
    """The gradient of x has its rows as far apart as x."""
    x = unit_rows(x)
    return x.new_empty(x.size(0), row_step(x))[:, : x.size(1)]


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor | None]:
    x, residual = arguments
    (gradient,) = gradients
    return _tanh_backward(gradient, x), None if residual is None else gradient


_tanh_backward = without_gradient(
    "tanh_residual_backward(Tensor gradient, Tensor x) -> Tensor", _backward, _backward_like
)
_tanh = Operator("tanh_residual(Tensor x, Tensor? residual) -> Tensor", _forward, _forward_like, gradient=_gradient)
