"""Batch normalisation together with what stands around it in a layer."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.ops.choice import fusible
from lspe.ops.fused.layout import LANES, row_step, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import operator

_CHUNK = 128
"""Rows whose sums are formed at once (``CHUNK`` in fused/csrc/norm.c)."""


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
    if x.size(1) < LANES or not fusible(x, norm.weight):
        return _plain(norm, x, scale, relu, residual, batch_statistics)
    y: Tensor
    mean, variance = norm.running_mean, norm.running_var
    y, batch_mean, batch_variance, _ = _normalization(
        x, norm.weight, norm.bias, residual, scale, mean, variance, norm.eps, relu, batch_statistics
    )
    if batch_statistics and mean is not None and variance is not None:
        rows = x.size(0)
        with torch.no_grad():
            mean.lerp_(batch_mean, _momentum(norm))
            variance.lerp_(batch_variance * (rows / (rows - 1)), _momentum(norm))
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


def _forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    scale: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    relu: bool,
    batch_statistics: bool,
) -> tuple[Tensor, ...]:
    """Beside the result: mean, biased variance and 1 / √(variance + ε), of the rows or as given."""
    y, *statistics = _forward_like(x, weight)
    if not batch_statistics:
        statistics[0].copy_(mean)
        statistics[1].copy_(variance)
    x, residual = unit_rows(x), None if residual is None else unit_rows(residual)
    library_for(x).norm_forward(
        threads(),
        *x.shape,
        x,
        row_step(x),
        scale,
        weight,
        bias,
        x.new_tensor(eps),
        relu,
        batch_statistics,
        residual,
        0 if residual is None else row_step(residual),
        _room(x),
        *statistics,
        y,
    )
    return y, *statistics


def _forward_like(x: Tensor, weight: Tensor, *_: Any) -> tuple[Tensor, ...]:
    return x.new_empty(x.shape), torch.empty_like(weight), torch.empty_like(weight), torch.empty_like(weight)


def _room(x: Tensor) -> Tensor:
    return x.new_empty(-(-x.size(0) // _CHUNK), 2, x.size(1))


def _backward(
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
    of_x, of_weight, of_bias = _backward_like(gradient, x, weight, bias)
    library_for(x).norm_backward(
        threads(),
        *x.shape,
        x,
        row_step(x),
        scale,
        weight,
        bias,
        mean,
        rate,
        relu,
        batch_statistics,
        gradient,
        row_step(gradient),
        _room(x),
        x.new_empty(2, x.size(1)),
        of_x,
        of_weight,
        of_bias,
    )
    return of_x, of_weight, of_bias


def _backward_like(gradient: Tensor, x: Tensor, weight: Tensor, bias: Tensor, *_: Any) -> tuple[Tensor, ...]:
    """The gradient of x has its rows as far apart as x."""
    return x.new_empty(x.size(0), row_step(x))[:, : x.size(1)], torch.empty_like(weight), torch.empty_like(bias)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight, bias, residual, scale, _, _, _, *ctx.options = inputs
    _, mean, _, rate = output
    ctx.has_residual = residual is not None
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(unit_rows(x), weight, bias, scale, mean, rate)


def _differentiate(ctx: Any, gradient: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
    if gradient is None:
        return (None,) * 10
    of_x, of_weight, of_bias = _normalization_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return of_x, of_weight, of_bias, gradient if ctx.has_residual else None, *[None] * 6


_normalization_backward = operator(
    "normalize_backward(Tensor gradient, Tensor x, Tensor weight, Tensor bias, Tensor? scale, Tensor mean, "
    "Tensor rate, bool relu, bool batch_statistics) -> (Tensor, Tensor, Tensor)",
    _backward,
    _backward_like,
)
_normalization = operator(
    "normalize(Tensor x, Tensor weight, Tensor bias, Tensor? residual, Tensor? scale, Tensor mean, Tensor variance, "
    "float eps, bool relu, bool batch_statistics) -> (Tensor, Tensor, Tensor, Tensor)",
    _forward,
    _forward_like,
    remember=_remember,
    gradient=_differentiate,
)
