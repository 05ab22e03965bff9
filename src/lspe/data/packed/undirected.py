"""Undirected edges as the directed ones that graphs hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index


def both_directions(
    num_edges: ArrayLike, edge_index: ArrayLike, *columns: Array
) -> tuple[Index, Array, tuple[Array, ...]]:
    """Turn undirected edges, each listed once, into two directed ones: number per graph, edge_index,
    columns.
    """
    source, target = np.asarray(edge_index)
    doubled = np.stack([np.stack([source, target], 1).reshape(-1), np.stack([target, source], 1).reshape(-1)])
    return np.asarray(num_edges, dtype=np.int64) * 2, doubled, tuple(np.repeat(c, 2, axis=0) for c in columns)
