"""The position's activation with what it is added to, in C."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lspe.ops.fused.layout import rows_like, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator


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


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    x, residual = arguments
    gradient = gradients[0]
    assert gradient is not None
    of_x = rows_like(x)
    library_for(x).call("tanh_backward", threads=threads(), x=unit_rows(x), other=unit_rows(gradient), out=of_x)
    return [of_x, None if residual is None else gradient]


_tanh = Operator(_forward, gradient=_gradient)
