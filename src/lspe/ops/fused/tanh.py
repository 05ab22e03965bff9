"""The position's activation, with what it is added to."""

from typing import Any

import torch
from torch import Tensor

from lspe.ops.choice import fusible
from lspe.ops.fused.layout import LANES, row_step, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import operator


def tanh_residual(x: Tensor, residual: Tensor | None) -> Tensor:
    """residual + tanh(x), ``[rows, d]``; tanh(x) alone without it."""
    if x.size(1) < LANES or not fusible(x):
        return torch.tanh(x) if residual is None else residual + torch.tanh(x)
    y: Tensor = _tanh(unit_rows(x), residual)
    return y


def _forward(x: Tensor, residual: Tensor | None) -> Tensor:
    y = x.new_empty(x.shape)
    residual = None if residual is None else unit_rows(residual)
    row = 0 if residual is None else row_step(residual)
    library_for(x).tanh_forward(threads(), *x.shape, x, row_step(x), residual, row, y)
    return y


def _backward(gradient: Tensor, x: Tensor) -> Tensor:
    gradient = unit_rows(gradient)
    of_x = _backward_like(gradient, x)
    library_for(x).tanh_backward(threads(), *x.shape, x, row_step(x), gradient, row_step(gradient), of_x)
    return of_x


def _backward_like(gradient: Tensor, x: Tensor) -> Tensor:
    return x.new_empty(x.size(0), row_step(x))[:, : x.size(1)]


def _remember(ctx: Any, inputs: tuple[Tensor, Tensor | None], output: Tensor) -> None:
    x, residual = inputs
    ctx.has_residual = residual is not None
    ctx.save_for_backward(x)


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
    return _tanh_backward(gradient, *ctx.saved_tensors), gradient if ctx.has_residual else None


_tanh_backward = operator("tanh_residual_backward(Tensor gradient, Tensor x) -> Tensor", _backward, _backward_like)
_tanh = operator(
    "tanh_residual(Tensor x, Tensor? residual) -> Tensor",
    _forward,
    lambda x, _: x.new_empty(x.shape),
    remember=_remember,
    gradient=_differentiate,
)
