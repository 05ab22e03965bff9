"""What ``y`` of a person's graphs is: which level it belongs to, which task it is, and how it is divided by masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lspe.data.errors import DataError
from lspe.data.packed.container import Array
from lspe.data.packed.targets import UNKNOWN_CLASS, is_known
from lspe.data.splits import NAMES, Splits, hold_out
from lspe.data.words import Level, TaskKind

if TYPE_CHECKING:
    from torch_geometric.data import Data

MASKS = tuple(f"{name}_mask" for name in NAMES)


def find_level(graphs: Sequence[Data], wanted: Level | None) -> Level:
    """What the ``y`` of graphs belongs to, by its shapes over all of them; refused where it could be both or neither.

    One row per node (or per edge) in every graph tells labels of nodes (edges). Of a single graph, and of one with
    masks, ``y`` cannot be that of the graph.
    """
    shapes = [list(graph.y.shape) for graph in graphs]
    targets = [graph.y.numel() for graph in graphs]
    of_graphs = [len(shape) < 2 or (len(shape) == 2 and shape[0] == 1) for shape in shapes]
    counts: dict[Level, list[int]] = {
        "node": [int(graph.num_nodes) for graph in graphs],
        "edge": [int(graph.num_edges) for graph in graphs],
    }
    fits: dict[Level, bool] = {"graph": all(of_graphs) and len(set(targets)) == 1}
    for level, count in counts.items():
        rows = [bool(shape) and len(shape) < 3 and shape[0] == n for shape, n in zip(shapes, count, strict=True)]
        fits[level] = all(rows) and (max(count) > 1 or level == wanted)
    if (fits["node"] or fits["edge"]) and (len(graphs) == 1 or MASKS[0] in graphs[0]):
        fits["graph"] = wanted == "graph"
    if wanted is not None and fits[wanted]:
        return wanted
    possible = [level for level, does in fits.items() if does]
    if wanted is None and len(possible) == 1:
        return possible[0]
    raise DataError(_misfit(shapes, targets, counts, possible, wanted))


def _misfit(
    shapes: Sequence[list[int]],
    targets: Sequence[int],
    counts: Mapping[Level, Sequence[int]],
    possible: Sequence[Level],
    wanted: Level | None,
) -> str:
    """Why the level of targets is not clear, or not the one that is wanted."""
    if wanted is not None and wanted != "graph":
        rows = counts[wanted]
        odd = next((i for i, shape in enumerate(shapes) if not shape or shape[0] != rows[i]), 0)
        return (
            f"the y of graph {odd} has shape {shapes[odd]} and the graph has {rows[odd]} {wanted}s: targets of "
            f"{wanted}s have a row per {wanted}"
        )
    finer = [level for level in possible if level != "graph"]
    if not finer:
        odd = next((i for i, shape in enumerate(shapes) if len(shape) > 2 or targets[i] != targets[0]), 0)
        place = f"the y of graph {odd} has shape {shapes[odd]}{f', that of graph 0 {shapes[0]}' if odd else ''}"
        return f"{place}: the targets of a graph have shape [1, T], with the same T in all graphs"
    number = int(np.argmax(counts[finer[0]]))
    place = f"the y of graph {number} has shape {shapes[number]}"
    if wanted == "graph":
        return f"{place}: it is a label per {finer[0]}, not of a graph. Targets of a graph have shape [1, T]."
    say = "Say what they are: " + " or ".join(f"level={level!r}" for level in possible)
    if "graph" in possible:
        return (
            f"{place}, and all graphs have {counts[finer[0]][number]} {finer[0]}s: these may be {targets[number]} "
            f"targets of the graph or a label per {' or '.join(finer)}. Write targets of a graph as [1, T]: "
            f"graph.y = graph.y.reshape(1, -1). {say}."
        )
    return f"{place}, and all graphs have as many nodes as edges: these may be labels of either. {say}."


def read_targets(y: Array, level: Level, task: TaskKind | None) -> tuple[Array, TaskKind, int]:
    """Targets [R, …] in the form of their task, the task, and the number of outputs."""
    y = y.reshape(len(y), -1)
    if y.dtype.kind == "b":
        y = y.astype(np.int64)
    known = ~np.isnan(y) if y.dtype.kind == "f" else np.ones(y.shape, dtype=np.bool_)
    if level != "graph" and y.dtype.kind == "i" and task != "regression":
        known = y != UNKNOWN_CLASS
    values = y[known]
    if not len(values) or np.isinf(values).any():
        raise DataError("y has no values, or infinite ones")
    if task is None:
        task = _task_of(values, y)
    if task == "multiclass":
        if y.shape[1] != 1 or y.dtype.kind not in "iu" or values.min() < 0:
            raise DataError(f"a multi-class y is one whole number a {level}, from 0 on")
        return y[:, 0].astype(np.int64), task, int(values.max()) + 1
    if task == "binary" and not np.isin(values, (0, 1)).all():
        raise DataError("a binary y is 0, 1 or NaN")
    if level == "graph" and task == "regression" and not known.any(axis=1).all():
        raise DataError("a graph has no target at all: its y is NaN; leave such graphs out")
    return np.where(known, y, np.nan).astype(np.float32), task, y.shape[1]


def _task_of(values: Array, y: Array) -> TaskKind:
    if y.dtype.kind in "iu" and y.shape[1] == 1 and values.max() > 1:
        return "multiclass"
    return "binary" if np.isin(values, (0, 1)).all() else "regression"


def splits_of_masks(masks: Mapping[str, Array], y: Array) -> list[Splits]:
    """The divisions that ``train_mask``, ``val_mask`` and ``test_mask`` make of targets, [N] or [N, F] for F of them.

    Targets that are not known are in no part. Where there is no ``test_mask``, all targets test that are in no other
    part; where there is no ``val_mask``, a tenth of the training part validates.
    """
    known = is_known(y)
    columns = {name: _as_columns(name, masks[name], len(y)) for name in MASKS if name in masks}
    count = max(column.shape[1] for column in columns.values())
    for name, column in columns.items():
        if column.shape[1] not in (1, count):
            raise DataError(f"{name} has {column.shape[1]} columns and others have {count}: one division per column")
    divisions = []
    for fold in range(count):
        parts = {name: column[:, fold % column.shape[1]] & known for name, column in columns.items()}
        divisions.append(_division(parts, known, y))
    return divisions


def _as_columns(name: str, mask: Array, rows: int) -> NDArray[np.bool_]:
    if len(mask) != rows or mask.ndim > 2 or not np.isin(mask, (0, 1)).all():
        raise DataError(f"{name} has shape {list(mask.shape)} for {rows} targets; a mask is true or false for each")
    return mask.reshape(rows, -1).astype(np.bool_)


def _division(parts: Mapping[str, NDArray[np.bool_]], known: NDArray[np.bool_], y: Array) -> Splits:
    train = parts.get("train_mask", np.zeros_like(known))
    val = parts.get("val_mask", np.zeros_like(known))
    test = parts.get("test_mask", known & ~train & ~val)
    for one, other, names in (
        (train, val, "train and val"),
        (train, test, "train and test"),
        (val, test, "val and test"),
    ):
        if (one & other).any():
            raise DataError(f"target {int((one & other).argmax())} is in {names}_mask: a target belongs to one part")
    splits = {name: np.flatnonzero(part) for name, part in zip(NAMES, (train, val, test), strict=True)}
    if "val_mask" not in parts and len(splits["train"]) > 1:
        classes = y if y.ndim == 1 else np.zeros(len(y))
        splits["train"], splits["val"] = hold_out(splits["train"], classes, min(10, len(splits["train"])))
    for name in ("train", "val"):
        if not len(splits[name]):
            raise DataError(f"{name}_mask marks no target that is known: there is nothing to {name} on")
    return splits
