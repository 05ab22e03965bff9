"""What the target columns of a table mean: numbers, yes or no, or classes; found out or given."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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


def to_numbers(values: Sequence[str], *, decimal_comma: bool = False) -> list[float | None]:
    """The numbers of a column; nothing but active and inactive, Y and N and the like are 1 and 0."""
    words = [value.strip().lower() for value in values]
    if all(word in _YES_NO_IF_ALL or word in _MISSING for word in words):
        return [_YES_NO_IF_ALL.get(word, math.nan) for word in words]
    return [to_number(value, decimal_comma=decimal_comma) for value in values]


def read_targets(
    columns: dict[str, Sequence[str]], task: TaskKind | None, name: str, *, decimal_comma: bool = False
) -> Targets:
    """The targets of the table `name` from the text in its target columns."""
    numbers = {column: to_numbers(values, decimal_comma=decimal_comma) for column, values in columns.items()}
    if task is None:
        task = _find_out(columns, numbers, name)
    if task == "multiclass":
        return _classes(columns, name)
    return _numbers(columns, numbers, task)


def _find_out(columns: dict[str, Sequence[str]], numbers: dict[str, list[float | None]], name: str) -> TaskKind:
    for column, values in columns.items():
        given = sum(not is_missing(value) for value in values)
        if not given:
            raise DataError(f"{name}: the target column {column!r} is empty")
        text = sum(
            number is None and not _LIMIT.fullmatch(value.strip())
            for number, value in zip(numbers[column], values, strict=True)
        )
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
    usable = [number for values in numbers.values() for number in values if number is not None and number == number]
    return "binary" if set(usable) <= {0.0, 1.0} else "regression"


def _numbers(columns: dict[str, Sequence[str]], numbers: dict[str, list[float | None]], task: TaskKind) -> Targets:
    problems = []
    y = np.full((len(next(iter(columns.values()))), len(columns)), np.nan)
    for position, (column, values) in enumerate(columns.items()):
        for row, (text, number) in enumerate(zip(values, numbers[column], strict=True)):
            if number is None:
                problems.append((row, column, text, _why_no_number(text)))
            elif abs(number) > LARGEST:
                problems.append((row, column, text, "is infinite or too large"))
            elif task == "binary" and number not in (0.0, 1.0) and number == number:
                problems.append((row, column, text, "is neither 0 nor 1"))
            else:
                y[row, position] = number
    notes = tuple(note for column, values in columns.items() if (note := _meaning_of_words(column, values)))
    return Targets(task, y, (), problems, notes)


def _meaning_of_words(column: str, values: Sequence[str]) -> str:
    """Which words of a column are yes and which are no; '' where it holds anything else."""
    words = dict.fromkeys(value.strip() for value in values if not is_missing(value))
    meaning = {word: _YES_NO_IF_ALL.get(word.lower()) for word in words}
    if None in meaning.values() or meaning.keys() <= {"0", "1"}:
        return ""
    told = (
        f"{word!r} counts as {number:g}" for word, number in sorted(meaning.items(), key=lambda one: -(one[1] or 0))
    )
    return f"{column!r}: {', '.join(told)}"


def _why_no_number(text: str) -> str:
    if _LIMIT.fullmatch(text.strip()):
        return "is a limit and not a measured number: write a number there, or leave the row out"
    if text.strip().lower() in _SPREADSHEET_ERRORS:
        return "is an error of the spreadsheet"
    return "is not a number"


def _classes(columns: dict[str, Sequence[str]], name: str) -> Targets:
    if len(columns) != 1:
        raise DataError(
            f"{name}: classes can be learned from one column, not from {len(columns)}: {', '.join(columns)}"
        )
    [values] = columns.values()
    labels = ["" if is_missing(value) else value.strip() for value in values]
    class_names = tuple(sorted({label for label in labels if label}, key=_by_number_then_text))
    number = {label: number for number, label in enumerate(class_names)}
    y = np.array([number.get(label, -1) for label in labels], dtype=np.int64)
    return Targets("multiclass", y, class_names, [])


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
