r"""Intervals that hold 90 % of the true values: wider where the networks and trees that predict as one are apart.

The half width of target t is :math:`w_t = a_t + b_t s_t`, where :math:`s` is the standard deviation over a network and
the kinds of trees, each counting as much as it does in the prediction, and of several networks the mean of those. Of
molecules that were held out, whose errors are known, the share of the constant a and of the spread is the one with the
best interval score [Gneiting and Raftery 2007, equation 43], and both are scaled so that the intervals hold what they
say (split conformal prediction). Without trees all are of one width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COVERAGE = 0.9
"""The share of true values that intervals are to hold."""

_SHARES_OF_SPREAD = np.linspace(0, 0.9, 10)
"""Of the mean half width; some of it is constant, so that models that happen to agree are not taken to be certain."""


@dataclass(frozen=True)
class Intervals:
    """The constants a and the slopes b of each target."""

    constants: tuple[float, ...]
    slopes: tuple[float, ...]

    @classmethod
    def fit(cls, errors: Floats, spread: Floats) -> Intervals | None:
        """By the errors [M, T], NaN where no value is known, and the spread [M, T] of molecules that were held out.

        ``None`` where these are too few to say: of n errors the ⌈(n + 1) · coverage⌉-th smallest is needed.
        """
        lines = []
        for error, apart in zip(np.abs(errors).T, spread.T, strict=True):
            known = ~np.isnan(error)
            if math.ceil((known.sum() + 1) * COVERAGE) > known.sum():
                return None
            lines.append(_best_line(error[known], apart[known]))
        return cls(tuple(constant for constant, _ in lines), tuple(slope for _, slope in lines))

    def half_widths(self, spread: Floats) -> Floats:
        """[M, T], by the spread [M, T]."""
        return np.array(self.constants) + np.array(self.slopes) * spread

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Intervals:
        """The inverse of :meth:`to_dict`."""
        return cls(tuple(map(float, values["constants"])), tuple(map(float, values["slopes"])))


def mean_and_spread(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The mean [M, outputs] of what models say, ``values`` [models, M, outputs], and their standard deviation."""
    mean = np.tensordot(weights, values, axes=1)
    return mean, np.sqrt(np.tensordot(weights, (values - mean) ** 2, axes=1))


def spread_of_one_network(values: Floats, weights: Floats, networks: int) -> Floats:
    """How far a network and the kinds of trees are apart, [M, outputs], as if each network stood for all of them.

    The first of `values` [models, M, outputs] are of networks. A molecule that is held out is so by one network alone,
    while all of them predict a new one: only what each has by itself is alike for both, so its mean is what tells.
    """
    counts = np.array([weights[:networks].sum(), *weights[networks:]])
    of_each = [mean_and_spread(np.stack([network, *values[networks:]]), counts)[1] for network in values[:networks]]
    return np.mean(of_each, axis=0)


def _best_line(error: Floats, spread: Floats) -> tuple[float, float]:
    """Constant and slope with the best interval score, among those whose intervals hold the coverage."""
    rank = math.ceil((len(error) + 1) * COVERAGE)
    usual = float(spread.mean())
    lines = []
    for share in _SHARES_OF_SPREAD if usual > 0 else [0.0]:
        relative = 1 - share + (share * spread / usual if share else 0.0)
        factor = np.sort(error / relative)[rank - 1]
        missed = np.maximum(0.0, error - factor * relative)
        score = np.mean(2 * factor * relative) + 2 / (1 - COVERAGE) * missed.mean()
        lines.append((score, float(factor * (1 - share)), float(factor * share / usual) if share else 0.0))
    _, constant, slope = min(lines)
    return constant, slope
