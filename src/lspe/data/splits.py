"""Dividing a set into training, validation and test part, or into folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lspe.data.errors import DataError
from lspe.data.packed import Index

Splits = dict[str, Index]
NAMES = ("train", "val", "test")


def split_sizes(count: int, fractions: tuple[float, float, float]) -> tuple[int, int, int]:
    """How many of `count` fall into each part: validation and test are rounded down but never empty."""
    if min(fractions) < 0 or not np.isclose(sum(fractions), 1):
        raise DataError(f"the parts of a split must add up to 1, not {' + '.join(map(str, fractions))}")
    wanted = sum(fraction > 0 for fraction in fractions)
    if count < wanted:
        raise DataError(f"{count} rows cannot be divided into {wanted} parts")
    val, test = (max(int(count * fraction), int(fraction > 0)) for fraction in fractions[1:])
    return count - val - test, val, test


def in_order(sizes: tuple[int, int, int]) -> Splits:
    """The first `sizes[0]` graphs train, the next validate, the rest test."""
    train, val, test = np.split(np.arange(sum(sizes), dtype=np.int64), np.cumsum(sizes)[:2])
    return dict(zip(NAMES, (train, val, test), strict=True))


def random_split(
    count: int, fractions: tuple[float, float, float] = (0.8, 0.1, 0.1), *, seed: int = 0
) -> Splits:
    """A random division with a fixed seed; each part in ascending order."""
    order = np.random.default_rng(seed).permutation(count)
    return {name: np.sort(order[part]) for name, part in in_order(split_sizes(count, fractions)).items()}


def by_code(codes: ArrayLike) -> Splits:
    """0 is training, 1 validation, 2 test."""
    return {name: np.flatnonzero(np.asarray(codes) == code) for code, name in enumerate(NAMES)}
