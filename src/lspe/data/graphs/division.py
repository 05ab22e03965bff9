"""How a person's graphs, or the targets of a single one, are divided into parts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lspe.data.graphs.targets import splits_of_masks
from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.targets import is_known
from lspe.data.splits import Fractions, Splits, k_folds, random_split
from lspe.data.words import Divided, Level, TaskKind


def divide(
    graphs: PackedGraphs,
    level: Level,
    task: TaskKind,
    masks: Mapping[str, Array],
    splits: Splits | None,
    *,
    fractions: Fractions,
    folds: int | None,
    seed: int,
) -> tuple[Divided, list[Splits]]:
    """What is divided, and how: one division, or one per fold.

    In this order: as `splits` say, as masks say, at random. The two directions of an undirected edge stay together.
    """
    divided: Divided = "targets" if level != "graph" and (masks or len(graphs) == 1) else "graphs"
    if splits is not None:
        if divided == "targets" and level == "edge":
            place = np.argsort(order_of_edges(graphs), kind="stable")
            splits = {name: np.sort(place[np.asarray(part)]) for name, part in splits.items()}
        return divided, [splits]
    if masks and folds is None:
        return divided, splits_of_masks(masks, graphs.y)
    labels, rows_of = _units(graphs, level, task, divided)
    if labels is not None and np.unique(labels, return_counts=True)[1].min() < 2:
        labels = None  # a class that occurs once cannot be in every part
    count = len(rows_of)
    drawn = (
        [random_split(count, fractions, seed=seed, labels=labels)]
        if folds is None
        else k_folds(count, folds, seed=seed, labels=labels)
    )
    everything = [np.empty(0, dtype=np.int64)]
    return divided, [
        {name: np.sort(np.concatenate(everything + [rows_of[one] for one in part])) for name, part in division.items()}
        for division in drawn
    ]


def _units(graphs: PackedGraphs, level: Level, task: TaskKind, divided: Divided) -> tuple[Array | None, list[Index]]:
    """What is drawn as one, as rows of what is divided, and the class of each where it has one."""
    if divided == "graphs":
        rows = np.arange(len(graphs))
        return graphs.y if task == "multiclass" and level == "graph" else None, list(rows[:, None])
    rows = np.flatnonzero(is_known(graphs.y))
    units = list(rows[:, None])
    if level == "edge":
        ends = np.stack([graphs.source, graphs.target]).astype(np.int64)
        _, pair = np.unique(np.sort(ends, axis=0)[:, rows], axis=1, return_inverse=True)
        by_pair = np.argsort(pair, kind="stable")
        units = np.split(rows[by_pair], np.flatnonzero(np.diff(pair[by_pair])) + 1)
    return graphs.y[[unit[0] for unit in units]] if task == "multiclass" else None, units


def order_of_edges(graphs: PackedGraphs) -> Index:
    """Of the edges of a single graph as they stand in a packed set, where they stood when it was made."""
    return np.asarray(graphs.edge["given_place"], dtype=np.int64)
