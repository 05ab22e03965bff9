"""Sums of decision trees as plain arrays, so that a file needs neither pickle nor the library that grew them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lspe.data.packed.container import Array

Floats = NDArray[np.float64]
Link = Literal["identity", "sigmoid", "softmax"]

_ROWS_AT_ONCE = 1000
ARRAYS = ("roots", "feature", "threshold", "left", "right", "value", "start")


@dataclass(frozen=True)
class TreeSum:
    """The sum of many trees, then a link: [M, columns] → [M, K].

    In node i a row goes ``left[i]`` where its column ``feature[i]`` is at most ``threshold[i]``, else ``right[i]``.
    A leaf leads to itself and adds ``value[i]`` [K]; ``start`` [K] is what all rows begin with. ``share``: how much the
    sum counts beside those of the other kinds.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    start: Floats
    depth: int
    link: Link
    share: float = 1.0

    def predict(self, columns: Array) -> Floats:
        """Values, or probabilities, [M, K]."""
        total = self.add_up(columns)
        if self.link == "sigmoid":
            return 1 / (1 + np.exp(-total))
        if self.link == "softmax":
            shifted = np.exp(total - total.max(axis=1, keepdims=True))
            return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
        return total

    def add_up(self, columns: Array) -> Floats:
        """The sum before the link, [M, K]."""
        total = np.tile(self.start, (len(columns), 1))
        for begin in range(0, len(columns), _ROWS_AT_ONCE):
            some = columns[begin : begin + _ROWS_AT_ONCE]
            total[begin : begin + _ROWS_AT_ONCE] += self.value[self._leaves(some)].sum(axis=1)
        return total

    def _leaves(self, columns: Array) -> NDArray[np.int64]:
        """Where each row ends in each tree, [M, trees]; what has come to its leaf is not looked at again."""
        trees = max(len(self.roots), 1)
        node = np.tile(self.roots, len(columns))
        on_the_way = np.arange(len(node))
        for _ in range(self.depth):
            here = node[on_the_way]
            low = columns[on_the_way // trees, self.feature[here]] <= self.threshold[here]
            there = np.where(low, self.left[here], self.right[here])
            node[on_the_way] = there
            on_the_way = on_the_way[self.left[there] != there]
        return node.reshape(len(columns), len(self.roots))


def trees_of_file(arrays: Mapping[str, Array], place: str, *, depth: int, link: Link, share: float = 1.0) -> TreeSum:
    parts: dict[str, Any] = {}
    for name in ARRAYS:
        array = arrays[f"{place}/{name}"]
        parts[name] = array.astype(np.int64) if array.dtype.kind == "i" else array
    return TreeSum(depth=depth, link=link, share=share, **parts)


def put_together(nodes: Sequence[tuple[Array, ...]], values: Floats, start: Floats, link: Link) -> TreeSum:
    """Trees one after the other; each is (feature, threshold, left, right), children of leaves are −1."""
    sizes = np.array([len(one[0]) for one in nodes], dtype=np.int64)
    begins = np.cumsum(sizes) - sizes
    joined = [np.concatenate([np.zeros(0), *(one[part] for one in nodes)]) for part in range(2)]
    children = [np.concatenate([np.zeros(0, dtype=np.int64), *_numbered(nodes, begins, part)]) for part in (2, 3)]
    is_leaf = np.concatenate([np.zeros(0, dtype=bool), *(one[2] < 0 for one in nodes)])
    return TreeSum(
        roots=begins,
        feature=np.where(is_leaf, 0, joined[0]).astype(np.int64),
        threshold=np.where(is_leaf, 0.0, joined[1]),
        left=children[0],
        right=children[1],
        value=np.where(is_leaf[:, None], values, 0.0),
        start=start,
        depth=_depth(begins, *children),
        link=link,
    )


def _numbered(nodes: Sequence[tuple[Array, ...]], begins: Array, part: int) -> Iterator[Array]:
    """Children numbered over all trees, a leaf's child being itself."""
    for one, begin in zip(nodes, begins.tolist(), strict=True):
        child = one[part].astype(np.int64)
        yield np.where(child < 0, np.arange(len(child)), child) + begin


def _depth(roots: Array, left: Array, right: Array) -> int:
    """Steps from the roots to the furthest leaf."""
    level, depth = roots, 0
    while len(level := level[left[level] != level]):
        level = np.concatenate([left[level], right[level]])
        depth += 1
    return depth
