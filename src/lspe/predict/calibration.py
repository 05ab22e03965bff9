r"""Probabilities that mean what they say: of all molecules given 70 %, about 70 % are yes.

On molecules that were not trained on, logits are stretched and shifted (Platt's scaling) so that their log-loss is
lowest: :math:`\mathrm{logit}\, p' = a\, \mathrm{logit}\, p + b` for each yes/no target, whose order of molecules, and
so its ROC-AUC, stays as it is. Of classes they are only stretched (a temperature): :math:`p' \propto p^a`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lspe.data.words import TaskKind

Floats = NDArray[np.float64]

_SMALLEST = 1e-6
_FEWEST = 30
"""Labels below which nothing is changed."""

_CAUTION = 5.0
"""How much a change by 1 has to gain, twice, in nats over all labels: few labels change little."""

BINS = 10
_DRAWS = 50


@dataclass(frozen=True)
class Calibration:
    """The slope a and the shift b of each yes/no target, or one slope for all classes."""

    slopes: tuple[float, ...]
    shifts: tuple[float, ...]

    @classmethod
    def fit(cls, y: Floats, predicted: Floats, task: TaskKind) -> Calibration:
        """By probabilities [M, outputs] of molecules whose labels, [M, T] with NaN or [M] classes, are known."""
        if task == "multiclass":
            return cls((_fit_temperature(y.reshape(-1).astype(np.int64), predicted),), (0.0,))
        pairs = [_fit_line(*_known(one, column)) for one, column in zip(y.T, predicted.T, strict=True)]
        return cls(tuple(slope for slope, _ in pairs), tuple(shift for _, shift in pairs))

    def apply(self, predicted: Floats, task: TaskKind) -> Floats:
        """Probabilities [..., outputs], calibrated."""
        if task == "multiclass":
            return _softmax(self.slopes[0] * np.log(np.maximum(predicted, _SMALLEST)))
        return _sigmoid(np.array(self.slopes) * _logit(predicted) + np.array(self.shifts))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """The inverse of :meth:`to_dict`."""
        return cls(tuple(map(float, values["slopes"])), tuple(map(float, values["shifts"])))


def expected_calibration_error(y: Floats, predicted: Floats, task: TaskKind) -> float | None:
    """How far probabilities are from frequencies on average, over ten bins of equal width.

    Of classes it is the probability of the likeliest one, and whether it is right; of several targets the mean of each.
    """
    if task == "multiclass":
        right = (predicted.argmax(axis=1) == y.reshape(-1)).astype(np.float64)
        return _error(right, predicted.max(axis=1))
    errors = [_error(*_known(one, column)) for one, column in zip(y.T, predicted.T, strict=True)]
    defined = [error for error in errors if error is not None]
    return float(np.mean(defined)) if defined else None


def calibration_error_by_chance(y: Floats, predicted: Floats, task: TaskKind) -> float | None:
    """The :func:`expected_calibration_error` if these probabilities were just right: so few labels differ by chance.

    The mean over draws of the labels that are known in ``y``, each with its probability.
    """
    rng = np.random.default_rng(0)
    if task == "multiclass":
        predicted = predicted.max(axis=1, keepdims=True)
        y = np.zeros_like(predicted)
    draws = (np.where(np.isnan(y), np.nan, rng.random(y.shape) < predicted) for _ in range(_DRAWS))
    errors = [expected_calibration_error(drawn, predicted, "binary") for drawn in draws]
    defined = [error for error in errors if error is not None]
    return float(np.mean(defined)) if defined else None


def bins_of(predicted: Floats) -> NDArray[np.int64]:
    """Which of the bins each probability is in."""
    return np.minimum((predicted * BINS).astype(np.int64), BINS - 1)


def _error(truth: Floats, predicted: Floats) -> float | None:
    if not len(truth):
        return None
    number = bins_of(predicted)
    difference = np.bincount(number, truth - predicted, minlength=BINS)
    return float(np.abs(difference).sum() / len(truth))


def _known(y: Floats, predicted: Floats) -> tuple[Floats, Floats]:
    there = ~np.isnan(y)
    return y[there], predicted[there]


def _fit_line(y: Floats, predicted: Floats) -> tuple[float, float]:
    if len(y) < _FEWEST or len(np.unique(y)) < 2:
        return 1.0, 0.0
    logits = _logit(predicted)

    def cost(at: Floats) -> float:
        changed = at[0] * logits + at[1]
        loss = np.logaddexp(0, changed) - y * changed
        return float(loss.sum() + _CAUTION / 2 * ((at[0] - 1) ** 2 + at[1] ** 2))

    slope, shift = _lowest(cost, np.array([1.0, 0.0]))
    return (slope, shift) if slope > 0 else (1.0, 0.0)


def _fit_temperature(y: NDArray[np.int64], predicted: Floats) -> float:
    if len(y) < _FEWEST:
        return 1.0
    logs = np.log(np.maximum(predicted, _SMALLEST))

    def cost(at: Floats) -> float:
        chosen = _softmax(at[0] * logs)[np.arange(len(y)), y]
        return float(-np.log(np.maximum(chosen, 1e-300)).sum() + _CAUTION / 2 * (at[0] - 1) ** 2)

    [slope] = _lowest(cost, np.array([1.0]))
    return slope if slope > 0 else 1.0


def _lowest(cost: Any, start: Floats) -> list[float]:
    from scipy.optimize import minimize

    return [round(float(one), 6) for one in minimize(cost, start, method="Nelder-Mead").x]


def _logit(p: Floats) -> Floats:
    p = np.clip(p, _SMALLEST, 1 - _SMALLEST)
    return np.asarray(np.log(p / (1 - p)))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def _softmax(x: Floats) -> Floats:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
