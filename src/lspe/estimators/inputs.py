"""What scikit-learn hands over (lists, arrays, Series, frames) as graphs with targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from lspe.data import DataError, GraphData, PackedGraphs, smiles_to_graphs
from lspe.data.errors import shown
from lspe.data.graphs.pyg import pack
from lspe.data.words import Fragments, TaskKind
from lspe.features import Features, OGBFeatures
from lspe.predict.molecules import as_texts


@dataclass(frozen=True)
class EstimatorTargets:
    """What is to be learned.

    `y` is [M, T] float (NaN where a label is missing), or [M] class numbers of a multi-class task.
    """

    task: TaskKind
    y: NDArray[Any]
    names: tuple[str, ...]
    class_names: tuple[str, ...] = ()


def column_of(molecules: Any) -> list[Any]:
    """Molecules as a list: of a list, a 1-D array or Series, or of the only column of a table."""
    shape = getattr(molecules, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        return list(np.asarray(molecules)[:, 0])
    if isinstance(molecules, str | Data) or (shape is not None and len(shape) != 1):
        what = type(molecules).__name__ if shape is None else f"an array of shape {tuple(shape)}"
        raise DataError(f"X is {what}; give a list, array or Series of SMILES, or a list of PyG Data")
    return list(molecules)


def to_data(
    molecules: Any, targets: EstimatorTargets, sample_weight: Any | None, fragments: Fragments, processes: int | None
) -> GraphData:
    """Graphs with targets and weights, all of them to be learned from."""
    everything = column_of(molecules)
    if len(everything) != len(targets.y):
        raise DataError(f"X has {len(everything)} molecules, y has {len(targets.y)} rows")
    if not everything:
        raise DataError("X is empty: there is nothing to learn from")
    graphs, features = _graphs(everything, fragments, processes)
    columns = {"y": targets.y if targets.task == "multiclass" else targets.y.astype(np.float32)}
    if sample_weight is not None:
        columns["weight"] = _weights(sample_weight, len(everything))
    return GraphData(
        name="X",
        task=targets.task,
        num_outputs=len(targets.class_names) or len(targets.names),
        task_names=targets.names,
        class_names=targets.class_names,
        features=features,
        source="Python",
        graphs=replace(graphs, graph=columns),
        splits={"train": np.arange(len(everything))},
    )


def _graphs(molecules: list[Any], fragments: Fragments, processes: int | None) -> tuple[PackedGraphs, Features]:
    if isinstance(molecules[0], Data):
        return pack(molecules)
    texts = as_texts(molecules)
    found = smiles_to_graphs(texts, OGBFeatures(), fragments=fragments, processes=processes)
    refuse_unread(molecules, found.reasons)
    return found.graphs, OGBFeatures()


def refuse_unread(molecules: Sequence[Any], reasons: dict[int, str]) -> None:
    """Raise where a molecule could not be read."""
    if reasons:
        first = [f"X[{row}] {shown(molecules[row])} {reason}" for row, reason in list(reasons.items())[:3]]
        more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
        raise DataError(
            f"{'; '.join(first)}{more}. Leave such rows out; estimator.predictor_.predict gives NaN for them "
            "and predicts the others."
        )


def _weights(sample_weight: Any, count: int) -> NDArray[np.float32]:
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,):
        raise DataError(f"sample_weight has shape {weights.shape}; it needs one number for each of {count} molecules")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise DataError(f"sample_weight[{wrong[0]}] is {weights[wrong[0]]}; a weight is a number of at least 0")
    if not weights.any():
        raise DataError("all of sample_weight is 0: there is nothing to learn from")
    return weights.astype(np.float32)


def names_of(y: Any, count: int) -> tuple[str, ...]:
    """Of the targets: those of a frame or Series, else ``y``, or ``y0``, ``y1`` …"""
    columns = getattr(y, "columns", None)
    if columns is not None:
        return tuple(map(str, columns))
    if count == 1:
        name = getattr(y, "name", None)
        return ("y" if name is None else str(name),)
    return tuple(f"y{number}" for number in range(count))


def number_targets(y: Any, task: TaskKind) -> EstimatorTargets:
    """Targets that are numbers, [M] or [M, T]; NaN is a missing label, of which a row may have some but not all."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"y of {type(y).__name__} does not hold numbers") from None
    if values.ndim not in (1, 2):
        raise DataError(f"y has shape {values.shape}; it is one number a molecule, or one row of numbers")
    values = values[:, None] if values.ndim == 1 else values
    _refuse_at(np.isinf(values), values, "is infinite")
    unlabelled = np.isnan(values).all(axis=1)
    if unlabelled.any():
        raise DataError(
            f"y[{int(unlabelled.argmax())}] is NaN: a molecule without any label teaches nothing; leave it out"
        )
    names = names_of(y, values.shape[1])
    unknown = np.isnan(values).all(axis=0)
    if len(values) and unknown.any():
        raise DataError(f"the target {names[int(unknown.argmax())]!r} has no label at all")
    if task == "binary":
        _refuse_at(~(np.isnan(values) | np.isin(values, (0, 1))), values, "is neither 0 nor 1 nor NaN")
    return EstimatorTargets(task, values, names)


def _refuse_at(wrong: NDArray[np.bool_], values: NDArray[np.float64], problem: str) -> None:
    if wrong.any():
        row, column = (int(one) for one in np.argwhere(wrong)[0])
        place = f"y[{row}]" if values.shape[1] == 1 else f"y[{row}, {column}]"
        raise DataError(f"{place} = {values[row, column]:g} {problem}")
