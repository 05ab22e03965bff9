"""Where the rows of each graph are in arrays that hold those of many graphs one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Index = NDArray[np.int64]


def pointers(counts: ArrayLike) -> Index:
    """``[0, c_0, c_0 + c_1, ...]``: where each graph's rows begin, from the number of rows of each."""
    counts = np.asarray(counts, dtype=np.int64)
    ptr = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=ptr[1:])
    return ptr


def rows_of(ptr: Index, number: Index) -> tuple[list[Index], Index, Index]:
    """The rows of the graphs `number` one after the other, at each of several levels (nodes, edges).

    Shapes:
        - **ptr:** :math:`[L, G + 1]`, :func:`pointers` of each level
        - **number:** :math:`[B]`
        - **output:** the rows of each level; how many each graph has, :math:`[L, B]`; where each graph's begin in
          the result, :math:`[L, B + 1]`
    """
    start = ptr.take(number, axis=1)
    counts = ptr.take(number + 1, axis=1) - start
    begin = np.zeros((len(ptr), len(number) + 1), dtype=np.int64)
    counts.cumsum(axis=1, out=begin[:, 1:])
    start -= begin[:, :-1]
    rows = [one.repeat(count) for one, count in zip(start, counts, strict=True)]
    for level in rows:
        level += np.arange(len(level))
    return rows, counts, begin
