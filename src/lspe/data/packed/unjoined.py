"""Pairs of nodes that no edge joins, drawn at random: what a network must learn to tell from those that are joined."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index

_ROUNDS = 30
"""In a graph nine tenths of whose pairs are joined, 96 of 100 unjoined ones are found in so many."""


def pair_codes(node_ptr: Index, graph: Index, ends: Array) -> Index:
    """One number per pair ``ends`` [2, P] of nodes of ``graph`` [P], the same for both of its orders."""
    low, high = np.sort(ends.astype(np.int64), axis=0)
    widest = int(np.diff(node_ptr).max(initial=1))
    return np.asarray((node_ptr[graph] + low) * widest + high)


def draw_unjoined(
    node_ptr: Index, wanted: Index, joined: Index, rng: np.random.Generator, *, distinct: bool = False
) -> tuple[Index, Index]:
    """So many pairs of each graph, each as likely as any other, that are not among ``joined``.

    In a graph almost all of whose pairs are joined there may be fewer than wanted, in a complete one none.

    Args:
        node_ptr: ``[G + 1]``, where each graph's nodes begin.
        wanted: ``[G]``, of how many pairs each graph is asked.
        joined: codes of pairs (:func:`pair_codes`), sorted.
        rng: what they are drawn from.
        distinct: no pair twice.

    Returns:
        the graph of each pair, ``[P]`` in order, and its nodes within the graph, the smaller number first, ``[2, P]``.

    """
    graph = np.repeat(np.arange(len(wanted)), wanted)
    size = np.diff(node_ptr)[graph]
    graph, size = graph[size > 1], size[size > 1]
    pairs = np.zeros((2, len(graph)), dtype=np.int64)
    found = np.zeros(len(graph), dtype=np.bool_)
    for _ in range(_ROUNDS):
        missing = np.flatnonzero(~found)
        if not len(missing):
            break
        one = rng.integers(0, size[missing])
        other = rng.integers(0, size[missing] - 1)
        other += other >= one
        pairs[:, missing] = np.minimum(one, other), np.maximum(one, other)
        codes = pair_codes(node_ptr, graph, pairs)
        found = ~is_among(codes, joined)
        if distinct:
            found &= _is_first(codes)
    return graph[found], pairs[:, found]


def _is_first(codes: Index) -> NDArray[np.bool_]:
    """Which entries are not the same as one before them."""
    first = np.zeros(len(codes), dtype=np.bool_)
    first[np.unique(codes, return_index=True)[1]] = True
    return first


def is_among(codes: Index, known: Index) -> NDArray[np.bool_]:
    """Which codes are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(codes), dtype=np.bool_)
    place = np.searchsorted(known, codes).clip(max=len(known) - 1)
    return np.asarray(known[place] == codes)
