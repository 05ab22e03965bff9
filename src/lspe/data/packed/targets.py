"""Targets that are not known: NaN where they are numbers, -1 where they are classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lspe.data.packed.container import Array

UNKNOWN_CLASS = -1


def is_known(y: Array) -> NDArray[np.bool_]:
    """Of targets [R, T] or classes [R]: which rows have at least one target that is known."""
    known = ~np.isnan(y) if y.dtype.kind == "f" else y != UNKNOWN_CLASS
    return np.asarray(known.reshape(len(y), -1).any(axis=1))


def without_unknown(y: Array, known: NDArray[np.bool_]) -> Array:
    """Targets with those in some rows made unknown."""
    y = y.astype(np.float32 if y.dtype.kind == "f" else np.int64)
    y[~known] = np.nan if y.dtype.kind == "f" else UNKNOWN_CLASS
    return y
