"""Which encodings tell two graphs apart."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.encodings.by_kind import encode, encode_pairs
from lspe.encodings.dense import TooLargeError, all_pairs
from lspe.encodings.distinct import split_by_columns
from lspe.encodings.kinds import EncodingKind, find_kind

DIGITS = 9
"""Behind the point, up to which values have to agree: graphs may differ by less than a picture shows."""

MOST_NODES_OF_PAIRS = 500
"""The pairs of two larger graphs fill the memory."""


class LabelledGraph(NamedTuple):
    """``edge_index`` ``[2, E]``, and for each node a whole number that stands for its label, ``labels`` ``[n]``."""

    edge_index: Tensor
    labels: Tensor


@torch.no_grad()
def first_difference(kind: str | EncodingKind, first: LabelledGraph, second: LabelledGraph, k: int) -> int | None:
    """The first column, counted from 1, up to which the encodings of two graphs differ; ``None`` if k columns agree.

    Encodings of nodes differ if the two multisets of them do. Those of pairs are compared as seen from each node i: by
    what is at ii and the multiset of what is at ij. Values are equal up to rounding
    (:func:`~lspe.encodings.uniqueness`). Where an encoding depends on a choice, as eigenvectors on their signs,
    that part of it is compared which does not.

    Graphs with different labels, or different numbers of nodes, differ before the first column: 0.
    """
    kind = find_kind(kind)
    if not torch.equal(first.labels.sort().values, second.labels.sort().values):
        return 0
    width = kind.width or k
    labels, rows = (torch.cat(both) for both in zip(_rows(kind, first, width), _rows(kind, second, width), strict=True))
    per_column = rows.size(1) // width
    for number, found in enumerate(split_by_columns(labels, rows, digits=DIGITS)):
        nodes = found.numpy() if kind.level == "node" else _seen_from_nodes(found.numpy(), first.labels.numel())
        one, other = np.split(nodes, 2)
        if not np.array_equal(np.sort(one), np.sort(other)):
            return -(-number // per_column)
    return None


def _rows(kind: EncodingKind, graph: LabelledGraph, k: int) -> tuple[Tensor, Tensor]:
    """For each node, or for each pair: a number for its labels, and its encoding."""
    edge_index, labels = graph
    n = labels.numel()
    if kind.level == "node":
        if kind.comparable is not None:
            values = kind.comparable(edge_index, n, k)
        else:
            values = encode(kind, edge_index, n, k, dtype=torch.float64)
        return labels, values
    if n > MOST_NODES_OF_PAIRS:
        raise TooLargeError(f"a graph has {n:,} nodes: encodings of pairs are compared up to {MOST_NODES_OF_PAIRS:,}")
    i, j = pairs = all_pairs(n)
    values = encode_pairs(kind, edge_index, n, k, pairs=pairs, dtype=torch.float64)
    return (labels[i] * (labels.max() + 1) + labels[j]) * 2 + (i == j), values


def _seen_from_nodes(pair_kinds: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The kind of each node of two graphs, ``[2n]``, by the kinds of all pairs it belongs to, ``[2n²]``."""
    table = np.sort(pair_kinds.reshape(2 * n, n), axis=1)  # the pair ii has a kind that no ij has
    return np.unique(table, axis=0, return_inverse=True)[1].ravel()
