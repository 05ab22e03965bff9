"""Batch normalisation together with what stands around it in a layer."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.ops.choice import fused
from lspe.ops.native import library
from lspe.ops.rows import unit_rows

_CHUNK = 128
"""Rows whose sums are formed at once (``CHUNK`` in csrc/norm.c)."""


def batch_norm(
    norm: nn.BatchNorm1d,
    x: Tensor,
    *,
    scale: Tensor | None = None,
    relu: bool = False,
    residual: Tensor | None = None,
    batch_statistics: bool,
) -> Tensor:
    r"""Scale, normalise, activate and add in one pass.

    .. math:: y = r + \mathrm{ReLU}\Big(\gamma \odot \frac{s x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta\Big)

    Args:
        norm: holds γ, β, ε and the running statistics.
        x: ``[rows, d]``.
        scale: s, ``[rows, 1]``; ones if left out.
        relu: without it ReLU is left out.
        residual: r, ``[rows, d]``; zeros if left out.
        batch_statistics: μ and σ² are those of the rows and go into the running statistics; without it they are the
            running statistics.

    Returns:
        ``[rows, d]``.

    """
    if not fused(x, norm.weight):
        return _plain(norm, x, scale, relu, residual, batch_statistics)
    x = unit_rows(x)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    if batch_statistics:
        mean, variance = _moments(x.detach(), scale)
        momentum = norm.momentum if norm.momentum is not None else 1 / float(norm.num_batches_tracked or 1)
        with torch.no_grad():
            norm.running_mean.lerp_(mean, momentum)
            norm.running_var.lerp_(variance * (x.size(0) / (x.size(0) - 1)), momentum)
    else:
        mean, variance = norm.running_mean.clone(), norm.running_var.clone()
    y: Tensor = _normalize(x, scale, norm.weight, norm.bias, residual, mean, variance, norm.eps, relu, batch_statistics)
    return y


def _plain(
    norm: nn.BatchNorm1d, x: Tensor, scale: Tensor | None, relu: bool, residual: Tensor | None, batch_statistics: bool
) -> Tensor:
    x = x if scale is None else x * scale
    momentum = norm.momentum if norm.momentum is not None else 1 / float(norm.num_batches_tracked or 1)
    x = F.batch_norm(
        x, norm.running_mean, norm.running_var, norm.weight, norm.bias, batch_statistics, momentum, norm.eps
    )
    x = torch.relu(x) if relu else x
    return x if residual is None else residual + x


@torch.library.custom_op("lspe::moments", mutates_args=(), device_types="cpu")
def _moments(x: Tensor, scale: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of the columns of s · x."""
    native = library(x.dtype)
    assert native is not None
    rows, width = x.shape
    mean, variance = x.new_empty(width), x.new_empty(width)
    native.norm_moments(torch.get_num_threads(), rows, width, x, x.stride(0), scale, _room(x), mean, variance)
    return mean, variance


def _room(x: Tensor) -> Tensor:
    return x.new_empty(-(-x.size(0) // _CHUNK), 2, x.size(1))


@_moments.register_fake
def _(x: Tensor, scale: Tensor | None) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.size(1)), x.new_empty(x.size(1))


@torch.library.custom_op("lspe::normalize", mutates_args=(), device_types="cpu")
def _normalize(
    x: Tensor,
    scale: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    relu: bool,
    batch_statistics: bool,
) -> Tensor:
    native = library(x.dtype)
    assert native is not None
    y = x.new_empty(x.shape)
    residual = None if residual is None else unit_rows(residual)
    native.norm_apply(
        torch.get_num_threads(),
        *x.shape,
        x,
        x.stride(0),
        scale,
        weight,
        bias,
        mean,
        torch.rsqrt(variance + eps),
        relu,
        residual,
        0 if residual is None else residual.stride(0),
        y,
    )
    return y


@_normalize.register_fake
def _(
    x: Tensor,
    scale: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    relu: bool,
    batch_statistics: bool,
) -> Tensor:
    return x.new_empty(x.shape)


@torch.library.custom_op("lspe::normalize_backward", mutates_args=(), device_types="cpu")
def _normalize_backward(
    gradient: Tensor,
    x: Tensor,
    scale: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    relu: bool,
    batch_statistics: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    native = library(x.dtype)
    assert native is not None
    gradient = unit_rows(gradient)
    of_x = _rows_like(x)
    of_weight, of_bias = torch.empty_like(weight), torch.empty_like(bias)
    native.norm_backward(
        torch.get_num_threads(),
        *x.shape,
        x,
        x.stride(0),
        scale,
        weight,
        bias,
        mean,
        torch.rsqrt(variance + eps),
        relu,
        batch_statistics,
        gradient,
        gradient.stride(0),
        _room(x),
        x.new_empty(2, x.size(1)),
        of_x,
        of_weight,
        of_bias,
    )
    return of_x, of_weight, of_bias


def _rows_like(x: Tensor) -> Tensor:
    """Empty, and its rows stand as far apart as those of x."""
    return x.new_empty(x.size(0), max(x.stride(0), x.size(1)))[:, : x.size(1)]


@_normalize_backward.register_fake
def _(
    gradient: Tensor,
    x: Tensor,
    scale: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    relu: bool,
    batch_statistics: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    return _rows_like(x), torch.empty_like(weight), torch.empty_like(bias)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, scale, weight, bias, residual, mean, variance, *options = inputs
    ctx.has_residual = residual is not None
    ctx.options = options
    ctx.save_for_backward(x, scale, weight, bias, mean, variance)


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    of_x, of_weight, of_bias = _normalize_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return of_x, None, of_weight, of_bias, gradient if ctx.has_residual else None, *[None] * 5


_normalize.register_autograd(_differentiate, setup_context=_remember)
