"""Predictions for a table: every row and column kept, in order, whatever its length."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from lspe.data import TableChunk
from lspe.data.progress import progress_bar
from lspe.data.table.targets import to_numbers
from lspe.errors import UserError
from lspe.files.tables import Cell, check_output, open_table
from lspe.predict.embeddings import open_embeddings
from lspe.predict.naming import HIGH, LOW, SD, output_names
from lspe.predict.predictions import Floats, Predictions
from lspe.predict.predictor import Predictor
from lspe.predict.sources import chunks_of, column_with_smiles, count_rows, iter_rows

REASON = "reason"
NEAREST = {"nearest_smiles": False, "nearest_tanimoto": True, "nearest_learned": True}
"""Columns that say how near the training set is, and whether they hold numbers."""

Path_ = str | os.PathLike[str]
Watch = Callable[[int, str, Floats | None], None]


@dataclass(frozen=True)
class TableSummary:
    """What became of a table: rows, those without a prediction, the column of molecules, seconds."""

    rows: int
    without: int
    smiles_column: str
    seconds: float

    def __str__(self) -> str:
        text = f"{self.rows:,} molecule{'s' if self.rows != 1 else ''} in {self.seconds:.1f} s"
        if self.seconds > 5:
            text += f" ({self.rows / self.seconds:,.0f} a second)"
        if not self.without:
            return text
        text += f"; {self.without:,} could not be read: see the column {REASON!r}"
        if self.without == self.rows:
            text += f". Is {self.smiles_column!r} the column of SMILES?"
        return text


def predict_table(
    predictor: Predictor,
    table: Path_ | Sequence[str],
    output: Path_,
    *,
    smiles_column: str | None = None,
    embeddings: Path_ | None = None,
    nearest: bool = False,
    processes: int | None = None,
    watch: Watch | None = None,
) -> TableSummary:
    """Predict every row of a table, or of a list of SMILES; see :meth:`Predictor.predict_table`.

    ``nearest`` adds the training molecule that is most like each one, and how similar it is.
    ``watch`` is shown the number of each row that could be read (from 1), its SMILES and its extra numbers.
    """
    predictor.check_level("graph", "a table of molecules takes")
    check_output(output)
    if embeddings is not None and os.path.realpath(embeddings) == os.path.realpath(output):
        raise UserError(f"{output}: predictions and vectors cannot go to one file; name another one for the vectors")
    started = time.perf_counter()
    chunks, name = _source(table, smiles_column)
    first = next(chunks)
    wider = WiderTable.plan(predictor, first.columns, name, smiles_column=smiles_column, nearest=nearest)
    rows = without = 0
    with ExitStack() as stack:
        vectors = None
        if embeddings is not None:
            vectors = stack.enter_context(open_embeddings(embeddings))
        writer = stack.enter_context(open_table(output, wider.columns, _parquet_schema(table)))
        total = count_rows(table) if isinstance(table, str | os.PathLike) else len(table)
        advance = stack.enter_context(progress_bar("predict", total))
        for chunk, part, wider_rows in wider.rows(chain([first], chunks), processes):
            writer.write(wider_rows)
            texts = chunk.column(wider.smiles_column)
            if vectors is not None:
                vectors.write(rows, texts, part)
            if watch is not None:
                extra = extra_numbers(predictor, chunk)
                for row in part.rows.tolist():
                    watch(rows + row + 1, texts[row], extra[row] if predictor.extra_names else None)
            rows += len(chunk)
            without += len(part.reasons)
            advance(len(chunk))
    return TableSummary(rows, without, wider.smiles_column, time.perf_counter() - started)


@dataclass(frozen=True)
class WiderTable:
    """A table with predictions beside its columns: `columns` are all names, and whether they hold numbers.

    It holds no rows, so it can be sent to wherever they are.
    """

    predictor: Predictor
    smiles_column: str
    columns: dict[str, bool]
    nearest: bool

    @classmethod
    def plan(
        cls, predictor: Predictor, columns: tuple[str, ...], name: str, *, smiles_column: str | None, nearest: bool
    ) -> WiderTable:
        """What becomes of the table `name` with these columns; refused where it cannot be predicted."""
        trained_on = predictor.members[0].experiment.table
        column = column_with_smiles(columns, smiles_column, trained_on.smiles if trained_on else None, name)
        check_extra_columns(predictor, columns, name)
        names = new_names(predictor, columns)
        if nearest:
            predictor.check_known()
            names |= {_not_taken(column, columns): is_number for column, is_number in NEAREST.items()}
        return cls(predictor, column, {**dict.fromkeys(columns, False), **names}, nearest)

    def rows(
        self, chunks: Iterable[TableChunk], processes: int | None = None
    ) -> Iterator[tuple[TableChunk, Predictions, list[list[Cell]]]]:
        """Each chunk with its predictions, and with its rows as they are written, in order."""
        numbers = partial(extra_numbers, self.predictor)
        smiles_of = partial(TableChunk.column, name=self.smiles_column)
        for chunk, part in self.predictor.predict_pieces(chunks, smiles_of, processes, numbers):
            cells: Iterable[list[Cell]] = new_cells(self.predictor, part)
            if self.nearest:
                near = nearest_cells(self.predictor, smiles_of(chunk), part)
                cells = ([*some, *others] for some, others in zip(cells, near, strict=True))
            yield chunk, part, [[*row, *some] for row, some in zip(chunk.rows, cells, strict=True)]


def check_extra_columns(predictor: Predictor, columns: Sequence[str], name: str) -> None:
    """Refuse a table without the columns of further numbers that the model was trained with."""
    for wanted in predictor.extra_names:
        if wanted not in columns:
            raise UserError(
                f"{name} has no column {wanted!r}, which the model was trained with beside the molecules; "
                f"it has {', '.join(columns)}"
            )


def extra_numbers(predictor: Predictor, chunk: TableChunk) -> Any:
    """The further numbers of some rows, [M, E]; a cell without a number counts as missing."""
    columns = [to_numbers(chunk.column(one), decimal_comma=chunk.decimal_comma) for one in predictor.extra_names]
    return np.array([column.values for column in columns]).T


def _source(table: Path_ | Sequence[str], smiles_column: str | None) -> tuple[Iterator[TableChunk], str]:
    """The rows, and what to call the table in messages."""
    if isinstance(table, str | os.PathLike):
        name = "the standard input" if str(table) == "-" else str(table)
        return iter_rows(table, smiles_column), name
    return chunks_of(table), "the list of SMILES"


def new_names(predictor: Predictor, taken: Sequence[str]) -> dict[str, bool]:
    """The names of the columns that are added, and whether they hold numbers."""
    about = (predictor.task, predictor.task_names, predictor.class_names)
    names: dict[str, bool] = {}
    if predictor.task == "multiclass":
        names[f"{predictor.task_names[0]}_predicted"] = False
    kinds = [None, *([SD] if len(predictor.weights) > 1 else []), *([] if predictor.intervals is None else [LOW, HIGH])]
    for of_output in zip(*(output_names(*about, kind) for kind in kinds), strict=True):
        names |= dict.fromkeys(of_output, True)
    names[REASON] = False
    return {_not_taken(name, taken): is_number for name, is_number in names.items()}


def _not_taken(name: str, taken: Sequence[str]) -> str:
    """``name``, or the first of ``name_2``, ``name_3`` … that the table does not have."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def new_cells(predictor: Predictor, part: Predictions) -> Iterator[list[Cell]]:
    """What is added to each row."""
    columns = [part.mean] if part.sd is None else [part.mean, part.sd]
    if part.half_widths is not None:
        columns += [part.mean - part.half_widths, part.mean + part.half_widths]
    numbers = np.stack(columns, axis=2).reshape(len(part.mean), part.mean.shape[1] * len(columns))
    best = part.mean.argmax(axis=1).tolist()
    for molecule, values, likeliest in zip(part.row_of.tolist(), numbers.tolist(), best, strict=True):
        cells: list[Cell] = list(values)
        if molecule in part.reasons:
            cells = [None] * len(values)
        if predictor.task == "multiclass":
            cells.insert(0, None if molecule in part.reasons else predictor.class_names[likeliest])
        yield [*cells, part.reasons.get(molecule, "")]


def nearest_cells(predictor: Predictor, smiles: Sequence[str], part: Predictions) -> Iterator[list[Cell]]:
    """The training molecule with the highest Tanimoto similarity, this similarity, and the highest learned one."""
    near = predictor.nearest_of(smiles, part, 2)
    for row in range(part.count):
        found = near.get(row)
        if found is None:
            yield [None] * len(NEAREST)
        else:
            yield [found[0].smiles, round(found[0].tanimoto, 4), round(max(one.learned for one in found), 4)]


def _parquet_schema(table: Any) -> Any:
    """The types of the columns of a Parquet file, which reading turns into text."""
    if not isinstance(table, str | os.PathLike) or not str(table).lower().endswith(".parquet"):
        return None
    import pyarrow.parquet as pq

    return pq.read_schema(Path(table))
