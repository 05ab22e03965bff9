"""Arithmetic on flat arrays that hold the rows of many graphs one after the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lspe.data.errors import DataError
from lspe.data.packed.container import Array

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


def both_directions(
    num_edges: ArrayLike, edge_index: ArrayLike, *columns: Array
) -> tuple[Index, Array, tuple[Array, ...]]:
    """Turn undirected edges, each listed once, into two directed ones: number per graph, edge_index,
    columns.
    """
    source, target = np.asarray(edge_index)
    doubled = np.stack([np.stack([source, target], 1).reshape(-1), np.stack([target, source], 1).reshape(-1)])
    return np.asarray(num_edges, dtype=np.int64) * 2, doubled, tuple(np.repeat(c, 2, axis=0) for c in columns)


def check_columns(
    node: Mapping[str, Array],
    edge: Mapping[str, Array],
    graph: Mapping[str, Array],
    graphs: int,
    nodes: int,
    edges: int,
) -> None:
    for level, columns, rows in (("node", node, nodes), ("edge", edge, edges), ("graph", graph, graphs)):
        for name, column in columns.items():
            if "index" in name or name in ("batch", "ptr", "num_nodes", "adj", "face", "source", "target"):
                raise DataError(f"a column cannot be called {name!r}: PyG gives that name a meaning of its own")
            if len(column) != rows:
                raise DataError(f"{level} column {name!r} has {len(column)} rows for {rows} {level}s")
            if level != "graph" and column.dtype.kind == "f" and not np.isfinite(column).all():
                row = int(np.argwhere(~np.isfinite(column))[0, 0])
                raise DataError(f"{level} column {name!r} has a value that is not a number in row {row}")
