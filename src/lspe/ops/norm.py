"""Batch normalisation together with what stands around it in a layer."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.ops.choice import fused
from lspe.ops.native import library_for, threads
from lspe.ops.operator import operator
from lspe.ops.rows import LANES, unit_rows

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
    if x.size(1) < LANES or not fused(x, norm.weight):
        return _plain(norm, x, scale, relu, residual, batch_statistics)
    x = unit_rows(x)
    mean, variance = norm.running_mean, norm.running_var
    assert mean is not None
    assert variance is not None
    if batch_statistics:
        rows = x.size(0)
        with torch.no_grad():
            mean, variance = _moments(x, scale)
            norm.running_mean.lerp_(mean, _momentum(norm))  # type: ignore[union-attr]
            norm.running_var.lerp_(variance * (rows / (rows - 1)), _momentum(norm))  # type: ignore[union-attr]
    rate = torch.rsqrt(variance + norm.eps)
    y: Tensor = _normalization(x, norm.weight, norm.bias, residual, scale, mean, rate, relu, batch_statistics)
    return y


def _momentum(norm: nn.BatchNorm1d) -> float:
    return 1 / float(norm.num_batches_tracked or 1) if norm.momentum is None else norm.momentum


def _plain(
    norm: nn.BatchNorm1d, x: Tensor, scale: Tensor | None, relu: bool, residual: Tensor | None, batch_statistics: bool
) -> Tensor:
    x = x if scale is None else x * scale
    x = F.batch_norm(
        x, norm.running_mean, norm.running_var, norm.weight, norm.bias, batch_statistics, _momentum(norm), norm.eps
    )
    x = torch.relu(x) if relu else x
    return x if residual is None else residual + x


def _moments_of(x: Tensor, scale: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of the columns of s · x."""
    mean, variance = _moments_like(x, scale)
    library_for(x).norm_moments(threads(), *x.shape, x, x.stride(0), scale, _room(x), mean, variance)
    return mean, variance


def _moments_like(x: Tensor, scale: Tensor | None) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.size(1)), x.new_empty(x.size(1))


def _room(x: Tensor) -> Tensor:
    return x.new_empty(-(-x.size(0) // _CHUNK), 2, x.size(1))


def _apply(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    scale: Tensor | None,
    mean: Tensor,
    rate: Tensor,
    relu: bool,
    batch_statistics: bool,
) -> Tensor:
    y = x.new_empty(x.shape)
    residual = None if residual is None else unit_rows(residual)
    library_for(x).norm_apply(
        threads(),
        *x.shape,
        x,
        x.stride(0),
        scale,
        weight,
        bias,
        mean,
        rate,
        relu,
        residual,
        0 if residual is None else residual.stride(0),
        y,
    )
    return y


def _apply_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    scale: Tensor | None,
    mean: Tensor,
    rate: Tensor,
    relu: bool,
    batch_statistics: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    gradient = unit_rows(gradient)
    of_x, of_weight, of_bias = _apply_backward_like(gradient, x, weight, bias)
    library_for(x).norm_backward(
        threads(),
        *x.shape,
        x,
        x.stride(0),
        scale,
        weight,
        bias,
        mean,
        rate,
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


def _apply_backward_like(gradient: Tensor, x: Tensor, weight: Tensor, bias: Tensor, *_: Any) -> tuple[Tensor, ...]:
    """The gradient of x has its rows as far apart as x."""
    return x.new_empty(x.size(0), x.stride(0))[:, : x.size(1)], torch.empty_like(weight), torch.empty_like(bias)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, residual, scale, mean, rate, *ctx.options = inputs
    ctx.has_residual = residual is not None
    ctx.save_for_backward(x, weight, bias, scale, mean, rate)


def _differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    of_x, of_weight, of_bias = _normalization_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return of_x, of_weight, of_bias, gradient if ctx.has_residual else None, *[None] * 5


_STATISTICS = "Tensor? scale, Tensor mean, Tensor rate, bool relu, bool batch_statistics"
_moments = operator("moments(Tensor x, Tensor? scale) -> (Tensor, Tensor)", _moments_of, _moments_like)
_normalization_backward = operator(
    f"normalize_backward(Tensor gradient, Tensor x, Tensor weight, Tensor bias, {_STATISTICS}) "
    "-> (Tensor, Tensor, Tensor)",
    _apply_backward,
    _apply_backward_like,
)
_normalization = operator(
    f"normalize(Tensor x, Tensor weight, Tensor bias, Tensor? residual, {_STATISTICS}) -> Tensor",
    _apply,
    lambda x, *_: x.new_empty(x.shape),
    remember=_remember,
    gradient=_differentiate,
)
