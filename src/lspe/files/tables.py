"""Tables in CSV, TSV or Parquet, a few rows at a time, under their name only when complete."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from lspe.errors import UserError
from lspe.files.parquet import ParquetWriter
from lspe.files.whole import check_folder_of, complete_or_nothing

_DIGITS = 7
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
Cell = str | float | None


def rounded(value: float) -> float | None:
    """With the digits float32 has; ``None`` where there is no value."""
    return None if value != value else float(f"{value:.{_DIGITS}g}")


class TableWriter(Protocol):
    """Something rows are written to."""

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Add rows; ``None`` is an empty cell."""


def check_output(path: str | os.PathLike[str]) -> str:
    """The kind of table, ``.csv``, ``.tsv`` or ``.parquet``, that a name asks for; said before any work is done."""
    if str(path) == "-":
        return ".csv"
    target = Path(path)
    kind = Path(target.stem).suffix if target.suffix.lower() == ".gz" else target.suffix
    if kind.lower() not in (*_DELIMITERS, ".parquet"):
        raise UserError(f"{path}: a table is written to a name that ends in .csv, .tsv or .parquet (.gz may follow)")
    check_folder_of(target)
    return kind.lower()


@contextmanager
def open_table(
    path: str | os.PathLike[str], numeric: Mapping[str, bool], schema: Any | None = None
) -> Iterator[TableWriter]:
    """A table to write to (``-``: CSV on the standard output); an error leaves nothing behind.

    Args:
        path: where; its suffix says what.
        numeric: the columns' names in order, and whether they hold numbers or text.
        schema: of the Parquet file the text comes from: a Parquet file gets back the types of its columns.

    """
    kind = check_output(path)
    with ExitStack() as stack:
        if str(path) == "-":
            file: Any = sys.stdout
        else:
            temporary = stack.enter_context(complete_or_nothing(Path(path)))
            zipped = Path(path).suffix.lower() == ".gz"
            binary: Any = stack.enter_context(temporary.open("wb"))
            if zipped:
                binary = stack.enter_context(gzip.GzipFile(fileobj=binary, mode="wb"))
            if kind == ".parquet":
                yield _Rows(stack, binary, numeric, schema)
                return
            file = stack.enter_context(_as_text(binary))
        text = _Delimited(file, _DELIMITERS[kind])
        text.write([list(numeric)])
        yield text
        file.flush()


def _as_text(binary: Any) -> Any:
    return io.TextIOWrapper(binary, encoding="utf-8", newline="")


class _Delimited:
    """Rows of cells to a text."""

    def __init__(self, file: Any, delimiter: str) -> None:
        self.file = file
        self.delimiter = delimiter

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        written = [[f"{cell:.{_DIGITS}g}" if isinstance(cell, float) else cell for cell in row] for row in rows]
        text = self._text(written)
        if "\r" in text:  # the csv module leaves it without quotes, and readers take it for the end of the row
            text = "".join(self._text([row], quoted=_has_return(row)) for row in written)
        self.file.write(text)

    def _text(self, rows: Sequence[Sequence[Cell]], quoted: bool = False) -> str:
        text = io.StringIO(newline="")
        writer = csv.writer(
            text,
            delimiter=self.delimiter,
            lineterminator="\n",
            quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
        )
        writer.writerows(rows)
        return text.getvalue()


def _has_return(row: Sequence[Cell]) -> bool:
    return any(isinstance(cell, str) and "\r" in cell for cell in row)


class _Rows:
    """Rows of cells to a Parquet file."""

    def __init__(self, stack: ExitStack, file: Any, numeric: Mapping[str, bool], schema: Any | None) -> None:
        import pyarrow as pa

        before = {field.name.strip(): field.type for field in schema or () if _comes_back_from_text(field.type)}
        self.schema = pa.schema(
            [
                (name, pa.float64() if is_number else before.get(name, pa.string()))
                for name, is_number in numeric.items()
            ]
        )
        self.writer = stack.enter_context(ParquetWriter(file, self.schema))

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        import pyarrow as pa

        columns = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        arrays = [_array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        self.writer.write(pa.table(arrays, schema=self.schema))


def _comes_back_from_text(kind: Any) -> bool:
    from pyarrow import types

    of_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return of_number or types.is_date(kind) or (types.is_timestamp(kind) and kind.tz is None)


def _array(cells: Sequence[Cell], kind: Any) -> Any:
    """Cells as a column; text that was a number or a date before becomes one again."""
    import pyarrow as pa

    if pa.types.is_string(kind) or not any(isinstance(cell, str) for cell in cells):
        return pa.array(cells, kind)
    return pa.array([cell or None for cell in cells], pa.string()).cast(kind)
