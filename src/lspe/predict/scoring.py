"""How well a trained model predicts molecules with known labels, those of a new table or of its own test part."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from lspe.data import DataError, GraphData, read_table
from lspe.data.packed.container import Array
from lspe.data.report import Finding, Report
from lspe.data.table.table import Table
from lspe.predict.predictor import Predictor
from lspe.predict.splits import SplitPredictions


def predict_labelled(
    predictor: Predictor, table: str | os.PathLike[str], *, smiles_column: str | None = None
) -> tuple[SplitPredictions, Report]:
    """True and predicted values of a table with the targets the model was trained on, and which rows are left out."""
    trained_on = predictor.members[0].experiment.table
    given = smiles_column or (None if trained_on is None else trained_on.smiles)
    read = read_table(
        table,
        smiles=given,
        targets=predictor.task_names,
        extra=predictor.extra_names,
        task=predictor.task,
        on_invalid="skip",
        to_learn=False,
    )
    rows = np.flatnonzero(read.usable)
    extra = read.extra[rows] if read.extra_columns else None
    predicted = _values(predictor, [read.smiles[row] for row in rows.tolist()], extra)
    readable = ~np.isnan(predicted).any(axis=1)
    if not readable.any():
        raise DataError(f"{table}: no molecule of the column {read.smiles_column!r} could be read")
    kept = rows[readable]
    unreadable = [
        Finding(int(read.numbers[row]), read.smiles_column, read.smiles[row], predictor.reasons[one], "left out")
        for one, row in enumerate(rows.tolist())
        if one in predictor.reasons
    ]
    findings = sorted([*read.findings, *unreadable], key=lambda one: one.row)
    report = Report(len(read), len(kept), tuple(findings))
    predictions = SplitPredictions(
        "graph",
        predictor.task,
        predictor.task_names,
        predictor.class_names,
        _labels(read, predictor, kept),
        predicted[readable],
        {"row": read.numbers[kept]},
        {"smiles": [read.smiles[row] for row in kept.tolist()]},
    )
    return predictions, report


def predict_test(predictor: Predictor, data: GraphData) -> SplitPredictions:
    """True and predicted values of the test part of a table's graphs."""
    graphs = data.split("test")
    numbers = graphs.numbers()
    assert data.smiles is not None, "only tables have SMILES"
    smiles = [data.smiles[one] for one in numbers.tolist()]
    return SplitPredictions(
        "graph",
        data.task,
        data.task_names,
        data.class_names,
        graphs.y.astype(np.float64),
        _values(predictor, smiles, data.extra[numbers] if data.extra is not None and data.extra_names else None),
        {"row": graphs.column("table_row").astype(np.int64)},
        {"smiles": smiles},
    )


def _values(predictor: Predictor, smiles: list[str], extra: Array | None) -> NDArray[np.float64]:
    return np.asarray(predictor.predict(smiles, extra=extra)).reshape(len(smiles), -1)


def _labels(table: Table, predictor: Predictor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The labels of some rows; classes are numbered as the model numbers them."""
    y = table.targets.y[rows].astype(np.float64)
    if predictor.task != "multiclass":
        return y
    found = [table.targets.class_names[int(one)] for one in y]
    strange = sorted(set(found) - set(predictor.class_names))
    if strange:
        known = ", ".join(predictor.class_names)
        raise DataError(f"{table.path}: the class {strange[0]!r} is none the model was trained on ({known})")
    return np.array([predictor.class_names.index(one) for one in found], dtype=np.float64)
