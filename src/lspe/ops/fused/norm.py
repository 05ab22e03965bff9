"""Batch normalisation with what stands around it in a layer, in C; :class:`lspe.nn.BatchNorm` has the equation."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.fused.layout import rows_like, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator

_CHUNK = 128
"""Rows whose sums are formed at once (``CHUNK`` in csrc/norm.c)."""


class Norm(NamedTuple):
    """A normalisation inside a layer: by the statistics of the rows or by the running ones, and what it counts."""

    of_rows: bool
    epsilon: float
    momentum: float
    running_mean: Tensor
    running_variance: Tensor
    batches: Tensor | None

    def in_c(self, weight: Tensor, bias: Tensor) -> dict[str, Any]:
        """The fields of ``struct normal``."""
        return {
            "of_rows": self.of_rows,
            "epsilon": self.epsilon,
            "momentum": self.momentum,
            "weight": weight,
            "bias": bias,
            "running_mean": self.running_mean,
            "running_variance": self.running_variance,
        }


def normalize(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    scale: Tensor | None,
    statistics: tuple[Tensor, Tensor] | None,
    eps: float,
    relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Residual + ReLU(BN(scale · x)), and mean and biased variance: those given, or else those of the rows."""
    mean, variance = (None, None) if statistics is None else statistics
    y, mean, variance = _normalization(x, weight, bias, residual, scale, mean, variance, eps, relu, plain=_plain)
    assert y is not None
    assert mean is not None
    assert variance is not None
    return y, mean, variance


def _plain(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    scale: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    eps: float,
    relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    x = x if scale is None else x * scale
    found = mean is None or variance is None
    y = F.batch_norm(x, mean, variance, weight, bias, training=found, eps=eps)
    y = torch.relu(y) if relu else y
    y = y if residual is None else residual + y
    if mean is None or variance is None:
        variance, mean = torch.var_mean(x.detach(), 0, correction=0)
    return y, mean, variance


def _forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    scale: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    eps: float,
    relu: bool,
) -> list[Tensor]:
    """Beside the result: mean, biased variance and 1 / √(variance + ε), of the rows or as given."""
    y, statistics = x.new_empty(x.shape), x.new_empty(3, x.size(1)).unbind()
    if mean is not None and variance is not None:
        statistics[0].copy_(mean)
        statistics[1].copy_(variance)
    library_for(x).call(
        "norm_forward",
        threads=threads(),
        relu=relu,
        training=mean is None,
        epsilon=eps,
        x=unit_rows(x),
        residual=None if residual is None else unit_rows(residual),
        scale=scale,
        weight=weight,
        bias=bias,
        sums=_room(x),
        mean=statistics[0],
        variance=statistics[1],
        rate=statistics[2],
        out=y,
    )
    return [y, *statistics]


def _room(x: Tensor) -> Tensor:
    return x.new_empty(2 * -(-x.size(0) // _CHUNK), x.size(1))


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    x, weight, bias, residual, scale, given_mean, _, _, relu = arguments
    mean, _, rate = kept
    gradient = gradients[0]
    assert gradient is not None
    of_x, of_weight, of_bias = rows_like(x), torch.empty_like(weight), torch.empty_like(bias)
    library_for(x).call(
        "norm_backward",
        threads=threads(),
        relu=relu,
        training=given_mean is None,
        x=unit_rows(x),
        scale=scale,
        weight=weight,
        bias=bias,
        mean=mean,
        rate=rate,
        gradient=unit_rows(gradient),
        sums=_room(x),
        means=x.new_empty(2 * x.size(1)),
        x_gradient=of_x,
        weight_gradient=of_weight,
        bias_gradient=of_bias,
    )
    return [of_x, of_weight, of_bias, None if residual is None else gradient, *[None] * 5]


_normalization = Operator(_forward, results=3, differentiable=1, kept_from=1, gradient=_gradient)
