"""Which column of a table holds what, and which rows can be used."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain

import numpy as np

from lspe.data.errors import DataError
from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index
from lspe.data.report import MEND, Finding, first_few
from lspe.data.table.columns import (
    check_column,
    find_smiles_column,
    find_split_column,
    find_target_columns,
    may_be_about_rows,
)
from lspe.data.table.reading import iter_table_chunks
from lspe.data.table.table import Table
from lspe.data.table.targets import LARGEST, Targets, check_something_to_learn, read_targets, to_number, to_numbers
from lspe.data.table.texts import TextColumnWriter
from lspe.data.words import OnInvalid, TaskKind


def read_table(
    path: str | os.PathLike[str],
    *,
    smiles: str | None = None,
    targets: str | Sequence[str] | None = None,
    task: TaskKind | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
    split_column: str | None = None,
    on_invalid: OnInvalid = "error",
    to_learn: bool = True,
) -> Table:
    """Read a CSV, TSV or Parquet file (gzip too) with a column of SMILES and one or more targets.

    Columns that are not named are guessed: the one called ``smiles`` (or much like it), and as target what
    is left where that is clear. The `task` is found out: text is classes, nothing but 0 and 1 is
    ``binary``, other numbers are ``regression``. Empty cells are missing labels, where another target of
    the row has a label.

    `extra` columns hold numbers that are known of each molecule, beside its structure.

    What to do with a row that cannot be used (a target that is no number, no label at all, later a molecule
    that cannot be read) says `on_invalid`: ``error`` stops, ``skip`` leaves the row out, ``nan`` counts an
    unreadable target as missing and leaves a row out only where nothing is left of it.
    :attr:`GraphData.report` lists every such row. A table with nothing but one label is refused where it is `to_learn`
    from.
    """
    name = str(path)
    chunks = iter_table_chunks(path)
    first = next(chunks)
    columns = first.columns
    smiles_column = find_smiles_column(columns, smiles, name)
    for wanted in (weight, split_column, *extra):
        if wanted is not None:
            check_column(wanted, columns, name)
    used = {smiles_column, weight, split_column, *extra}
    needed: set[str | None] = set(columns)
    if targets is not None:
        given = [targets] if isinstance(targets, str) else targets
        needed = {*used, *given, *(column for column in columns if may_be_about_rows(column))}
    row_numbers = array("q")
    with ExitStack() as stack:
        writers = {column: stack.enter_context(TextColumnWriter()) for column in columns if column in needed}
        for chunk in chain([first], chunks):
            row_numbers.extend(chunk.numbers)
            for column, writer in writers.items():
                writer.append(chunk.column(column))
        values = {column: writer.finish() for column, writer in writers.items()}
    decimal_comma = first.decimal_comma
    numbers = np.array(row_numbers, dtype=np.int64)
    if not len(numbers):
        raise DataError(f"{name} has a header ({', '.join(columns)}) but no rows")
    names = find_target_columns(columns, values, targets, used, name)
    found = read_targets({column: values[column] for column in names}, task, name, decimal_comma=decimal_comma)

    usable, findings = _labelled_rows(found, names, values, numbers, on_invalid)
    weights = None
    if weight is not None:
        weights = np.fromiter((_weight(value, decimal_comma) for value in values[weight]), float, len(numbers))
        for row in np.flatnonzero(np.isnan(weights)).tolist():
            problem = "is no weight (a number of at least 0)"
            findings.append(Finding(int(numbers[row]), weight, values[weight][row], problem, "left out"))
        usable &= ~np.isnan(weights)
        if not weights[usable].any():
            raise DataError(f"{name}: the column {weight!r} gives no row a weight above 0")
    known = np.full((len(numbers), len(extra)), np.nan)
    for position, column in enumerate(extra):
        cells = to_numbers(values[column], decimal_comma=decimal_comma)
        known[:, position] = cells.values
        usable &= ~cells.is_text
        for row in np.flatnonzero(cells.is_text).tolist():
            findings.append(Finding(int(numbers[row]), column, values[column][row], "is not a number", "left out"))
    if findings and on_invalid == "error":
        raise DataError(f"{name}: {first_few(findings)}. {MEND}")
    if not usable.any():
        raise DataError(f"{name}: no row is left. {first_few(findings)}")
    if to_learn:
        check_something_to_learn(replace(found, y=found.y[usable]), names, name)
    return Table(
        path=name,
        smiles_column=smiles_column,
        target_columns=names,
        targets=found,
        smiles=values[smiles_column],
        numbers=numbers,
        usable=usable,
        weight=weights,
        extra_columns=tuple(extra),
        extra=known.astype(np.float32),
        split_column=split_column or find_split_column(values, names),
        values=values,
        on_invalid=on_invalid,
        findings=tuple(findings),
    )


def _labelled_rows(
    targets: Targets,
    names: Sequence[str],
    values: Mapping[str, Sequence[str]],
    numbers: Index,
    on_invalid: OnInvalid,
) -> tuple[Array, list[Finding]]:
    """Which rows have a label that can be used, and what is wrong with the others."""
    usable = targets.labelled
    unreadable = [row for row, *_ in targets.problems]
    if on_invalid != "nan":
        usable[unreadable] = False
    findings = [
        Finding(int(numbers[row]), column, value, problem, "counted as missing" if usable[row] else "left out")
        for row, column, value, problem in targets.problems
    ]
    problem = "is no label" if len(names) == 1 else "is no label, and the row has none of another target"
    for row in np.setdiff1d(np.flatnonzero(~usable), unreadable).tolist():
        findings.append(Finding(int(numbers[row]), names[0], values[names[0]][row], problem, "left out"))
    return usable, findings


def _weight(value: str, decimal_comma: bool) -> float:
    number = to_number(value, decimal_comma=decimal_comma)
    return number if number is not None and 0 <= number <= LARGEST else np.nan
