"""What the target columns of a table mean: numbers, yes or no, or classes; found out or given."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lspe.data.errors import DataError
from lspe.data.packed.container import Array
from lspe.data.words import TaskKind

LARGEST = float(np.finfo(np.float32).max)
_MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "null", "none", "-", "?"})
_YES_NO = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_YES_NO_IF_ALL = {
    **_YES_NO,
    "1": 1.0,
    "0": 0.0,
    "y": 1.0,
    "n": 0.0,
    "t": 1.0,
    "f": 0.0,
    "active": 1.0,
    "inactive": 0.0,
    "positive": 1.0,
    "negative": 0.0,
    "pos": 1.0,
    "neg": 0.0,
    "+": 1.0,
    "toxic": 1.0,
    "nontoxic": 0.0,
    "non-toxic": 0.0,
}
"""What means yes or no where nothing else stands in a column."""

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)?,\d+(e[+-]?\d+)?")
_LIMIT = re.compile(r"[<>≤≥~]=?\s*[+-]?[\d.,]+")
_SPREADSHEET_ERRORS = frozenset({"#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"})


@dataclass(frozen=True)
class Targets:
    """The targets of every row.

    - `y`: [R, T] float with NaN where there is no label, or [R] integer (−1 where there is none) for classes.
    - `class_names`: of a multi-class target, in the order of their numbers.
    - `problems`: (row position, column, value, what is wrong) of each value that is no label.
    - `notes`: which words count as yes and which as no.
    """

    task: TaskKind
    y: Array
    class_names: tuple[str, ...]
    problems: list[tuple[int, str, str, str]]
    notes: tuple[str, ...] = ()

    @property
    def labelled(self) -> Array:
        """Which rows have at least one label."""
        return np.asarray(self.y >= 0 if self.task == "multiclass" else ~np.isnan(self.y).all(axis=1))


def is_missing(value: str) -> bool:
    """Whether a cell says that there is no value."""
    return value.strip().lower() in _MISSING


def to_number(value: str, *, decimal_comma: bool = False) -> float | None:
    """The number a cell holds; NaN where it says there is none, ``None`` where it is something else.

    A comma stands between thousands, or with `decimal_comma` before the decimals.
    """
    text = value.strip().lower()
    if "," in text:
        if decimal_comma and _DECIMAL_COMMA.fullmatch(text):
            text = text.replace(".", "").replace(",", ".")
        elif not decimal_comma and _THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
    if text in _MISSING:
        return math.nan
    if text in _YES_NO:
        return _YES_NO[text]
    if "_" in text:  # Python reads 1_000 as a number, nobody else does
        return None
    try:
        return float(text)
    except ValueError:
        return None


class Numbers(NamedTuple):
    """The numbers in a column, [R]: NaN where a cell says there is none; `is_text` where it says something else."""

    values: NDArray[np.float64]
    is_text: NDArray[np.bool_]

    @property
    def known(self) -> NDArray[np.float64]:
        """The numbers that are there."""
        return self.values[~np.isnan(self.values)]


def to_numbers(values: Sequence[str], *, decimal_comma: bool = False) -> Numbers:
    """The numbers of a column; nothing but active and inactive, Y and N and the like are 1 and 0."""
    if all(word in _YES_NO_IF_ALL or word in _MISSING for word in map(_word, values)):
        found = (_YES_NO_IF_ALL.get(_word(value), math.nan) for value in values)
        return Numbers(np.fromiter(found, float, len(values)), np.zeros(len(values), dtype=bool))
    numbers, is_text = np.empty(len(values)), np.zeros(len(values), dtype=bool)
    for row, value in enumerate(values):
        number = to_number(value, decimal_comma=decimal_comma)
        numbers[row], is_text[row] = math.nan if number is None else number, number is None
    return Numbers(numbers, is_text)


def _word(value: str) -> str:
    return value.strip().lower()


def read_targets(
    columns: Mapping[str, Sequence[str]], task: TaskKind | None, name: str, *, decimal_comma: bool = False
) -> Targets:
    """The targets of the table `name` from the text in its target columns."""
    numbers = {column: to_numbers(values, decimal_comma=decimal_comma) for column, values in columns.items()}
    if task is None:
        task = _find_out(columns, numbers, name)
    if task == "multiclass":
        return _classes(columns, name)
    return _numbers(columns, numbers, task)


def _find_out(columns: Mapping[str, Sequence[str]], numbers: Mapping[str, Numbers], name: str) -> TaskKind:
    for column, values in columns.items():
        given = sum(not is_missing(value) for value in values)
        if not given:
            raise DataError(f"{name}: the target column {column!r} is empty")
        is_text = np.flatnonzero(numbers[column].is_text).tolist()
        text = sum(not _LIMIT.fullmatch(values[row].strip()) for row in is_text)
        if text > given / 2:
            distinct = len({value.strip() for value in values if not is_missing(value)})
            if len(columns) > 1:
                raise DataError(
                    f"{name}: the target column {column!r} holds text; only one column of classes is possible"
                )
            if distinct > max(20, given / 2):
                raise DataError(
                    f"{name}: the target column {column!r} holds {distinct} different texts; these are no classes. "
                    "Name the column to learn with targets=... (--target)."
                )
            return "multiclass"
    return "binary" if all(np.isin(one.known, (0.0, 1.0)).all() for one in numbers.values()) else "regression"


def _numbers(columns: Mapping[str, Sequence[str]], numbers: Mapping[str, Numbers], task: TaskKind) -> Targets:
    problems = []
    y = np.stack([one.values for one in numbers.values()], axis=1)
    for position, (column, values) in enumerate(columns.items()):
        found = y[:, position]
        too_large = np.abs(found) > LARGEST
        wrong = numbers[column].is_text | too_large
        if task == "binary":
            wrong |= ~np.isnan(found) & ~np.isin(found, (0.0, 1.0))
        for row in np.flatnonzero(wrong).tolist():
            text = values[row]
            if numbers[column].is_text[row]:
                problem = _why_no_number(text)
            else:
                problem = "is infinite or too large" if too_large[row] else "is neither 0 nor 1"
            problems.append((row, column, text, problem))
        found[wrong] = np.nan
    notes = tuple(note for column, values in columns.items() if (note := _meaning_of_words(column, values)))
    return Targets(task, y, (), problems, notes)


def _meaning_of_words(column: str, values: Sequence[str]) -> str:
    """Which words of a column are yes and which are no; '' where it holds anything else."""
    meaning: dict[str, float] = {}
    for value in values:
        word = value.strip()
        if is_missing(word) or word in meaning:
            continue
        if word.lower() not in _YES_NO_IF_ALL:
            return ""
        meaning[word] = _YES_NO_IF_ALL[word.lower()]
    if meaning.keys() <= {"0", "1"}:
        return ""
    told = (f"{word!r} counts as {number:g}" for word, number in sorted(meaning.items(), key=lambda one: -one[1]))
    return f"{column!r}: {', '.join(told)}"


def _why_no_number(text: str) -> str:
    if _LIMIT.fullmatch(text.strip()):
        return "is a limit and not a measured number: write a number there, or leave the row out"
    if text.strip().lower() in _SPREADSHEET_ERRORS:
        return "is an error of the spreadsheet"
    return "is not a number"


def _classes(columns: Mapping[str, Sequence[str]], name: str) -> Targets:
    if len(columns) != 1:
        raise DataError(
            f"{name}: classes can be learned from one column, not from {len(columns)}: {', '.join(columns)}"
        )
    [values] = columns.values()
    labels = {value.strip() for value in values if not is_missing(value)}
    class_names = tuple(sorted(labels, key=_by_number_then_text))
    number = {label: number for number, label in enumerate(class_names)}
    each = (-1 if is_missing(value) else number[value.strip()] for value in values)
    return Targets("multiclass", np.fromiter(each, np.int64, len(values)), class_names, [])


def _by_number_then_text(label: str) -> tuple[float, str]:
    number = to_number(label)
    return (math.inf if number is None else number, label)


def check_something_to_learn(targets: Targets, names: Sequence[str], table: str) -> list[str]:
    """Raise where there is nothing to learn; give notes where there is little."""
    notes: list[str] = []
    if targets.task == "multiclass":
        found = np.unique(targets.y[targets.y >= 0])
        if len(found) < 2:
            raise DataError(f"{table}: all rows are of the class {targets.class_names[0]!r}; there is nothing to learn")
        return notes
    for name, column in zip(names, targets.y.T, strict=True):
        distinct = np.unique(column[~np.isnan(column)])
        if len(distinct) >= 2:
            if targets.task == "regression" and len(distinct) <= 10 and len(column) > 50 and (distinct % 1 == 0).all():
                notes.append(
                    f"{name!r} has only {len(distinct)} whole numbers; if they are classes say task multiclass"
                )
            continue
        only = f"only {distinct[0]:g}" if len(distinct) else "no value"
        if len(names) == 1:
            raise DataError(f"{table}: the target {name!r} holds {only}; there is nothing to learn")
        notes.append(f"the target {name!r} holds {only}; it cannot be learned")
    return notes
