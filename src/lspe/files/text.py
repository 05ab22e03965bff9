"""Small files of text, written whole: each has its name only when it is complete.

Where one cannot be written the error says why, and ``then`` what to do when that is mended.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lspe.errors import UserError
from lspe.files.whole import complete_or_nothing

TRY_AGAIN = "try again"


def write_text(path: Path, text: str, *, then: str = TRY_AGAIN) -> None:
    """Write a text."""
    try:
        with complete_or_nothing(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise _cannot_write(path, error, then) from error


def write_json(path: Path, values: Mapping[str, Any], *, then: str = TRY_AGAIN) -> None:
    """Write an object as JSON; NaN is refused."""
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n", then=then)


def write_table(
    path: Path, rows: Iterable[Mapping[str, Any]], *, columns: Sequence[str] | None = None, then: str = TRY_AGAIN
) -> None:
    """Write rows with the same keys as CSV; ``None`` is an empty field. Name the ``columns`` if there may be no row."""
    rows = list(rows)
    if columns is None:
        columns = list(rows[0]) if rows else []
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, out.getvalue(), then=then)


def append_row(path: Path, row: Mapping[str, Any], *, then: str = TRY_AGAIN) -> None:
    """Add a row of numbers to what :func:`write_table` wrote."""
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(",".join("" if value is None else str(value) for value in row.values()) + "\n")
    except OSError as error:
        raise _cannot_write(path, error, then) from error


def _cannot_write(path: Path, error: OSError, then: str) -> UserError:
    return UserError(f"{path} could not be written ({error}). Make room or mend the permissions, then {then}")
