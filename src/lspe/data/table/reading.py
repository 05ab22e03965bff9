"""Tables in files: CSV, TSV, Parquet, Excel or SDF, compressed or not, read a chunk of rows at a time, every value as
text.

A row of a text ends at a line feed, with or without a carriage return before it, that is in no quotes (of a text
without line feeds: at a carriage return). A line of blanks is no row. Text files are read strictly: a row that does not
fit the header, a quote that never ends, a carriage return or NUL in the middle of a row, or bytes that are no UTF-8
are errors that name the row. Rows are numbered as a spreadsheet shows them: the header is row 1.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from lspe.data.errors import DataError
from lspe.data.table.excel import excel_records, is_zip
from lspe.data.table.parquet import Record, is_parquet, parquet_records
from lspe.data.table.sdf import is_sdf, sdf_records

_DELIMITERS = (",", "\t", ";", "|")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_LONGEST_FIELD = 10_000_000
_NOT_DELIMITED: Record = (0, [""])


@dataclass(frozen=True)
class TableChunk:
    """Some rows of a table: the columns' names, the rows' values, and the rows' numbers as a spreadsheet
    shows them.

    In a table whose columns are separated by semicolons, commas in numbers stand before the decimals.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int]
    decimal_comma: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[str]:
        """The values of one column."""
        position = self.columns.index(name)
        return [row[position] for row in self.rows]


def iter_table_chunks(
    path: str | os.PathLike[str], *, rows: int = 10_000, keep_empty: bool = False
) -> Iterator[TableChunk]:
    """The rows of the table at `path` (``-`` is the standard input), at most `rows` at a time.

    Rows whose values are all empty are passed over unless `keep_empty`. A table without rows still gives one empty
    chunk with its columns.
    """
    name = "the standard input" if str(path) == "-" else str(path)
    try:
        with _open(path) as file:
            if name.lower().endswith(".parquet") and not is_parquet(file.peek(4)):
                raise DataError(f"{name} is not a Parquet file; give a table in text the ending .csv or .tsv")
            with closing(_records(file, name)) as records:
                yield from _chunks(records, name, rows, keep_empty)
    except FileNotFoundError:
        raise DataError(f"{name} does not exist") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a folder, not a table") from None
    except PermissionError:
        raise DataError(f"{name} may not be read by you") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name} is damaged or was cut off: {error}. Get the file again.") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror or error}") from None


def iter_parquet_chunks(
    path: str | os.PathLike[str], begin: int, end: int, *, rows: int = 10_000
) -> Iterator[TableChunk]:
    """The rows `begin` to `end` (from 0) of a Parquet file, those without a value too, at most `rows` at a time."""
    with Path(path).open("rb") as file, closing(parquet_records(file, str(path), begin, end)) as records:
        yield from _chunks(chain([_NOT_DELIMITED], records), str(path), rows, keep_empty=True)


@contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[io.BufferedReader]:
    """The file's bytes, decompressed where they are gzip's."""
    with ExitStack() as stack:
        file: Any = sys.stdin.buffer if str(path) == "-" else stack.enter_context(Path(path).open("rb"))
        if not hasattr(file, "peek"):
            file = io.BufferedReader(file)
            stack.callback(file.detach)
        if file.peek(2)[:2] == b"\x1f\x8b":
            file = io.BufferedReader(stack.enter_context(gzip.GzipFile(fileobj=file)))
        yield file


def _records(file: io.BufferedReader, name: str) -> Generator[Record]:
    """First what separates the columns, then row number and values of each row, the header first."""
    if is_parquet(file.peek(4)):
        yield _NOT_DELIMITED
        yield from parquet_records(file, name)
    elif is_zip(file.peek(4)):
        yield _NOT_DELIMITED
        yield from excel_records(file, name)
    elif is_sdf(file.peek(1000)):
        yield _NOT_DELIMITED
        yield from sdf_records(file)
    else:
        yield from _text_records(file, name)


def _text_records(file: io.BufferedReader, name: str) -> Generator[Record]:
    """First what separates the columns, then row number and values of each row of a text, the header first."""
    start = file.peek(4)[:4]
    if start == b"\xd0\xcf\x11\xe0":
        raise DataError(f"{name} is a spreadsheet of an old Excel. Save it as .xlsx or as CSV (UTF-8) and use that.")
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    begin = file.peek(1)
    newline = "" if b"\r" in begin and b"\n" not in begin else "\n"
    text = io.TextIOWrapper(file, encoding=encoding, newline=newline)
    number = 0
    try:
        header = text.readline()
        while header and not header.strip():
            number += 1
            header = text.readline()
        said = _SEPARATOR_LINE.fullmatch(header.strip())
        if said:  # a line that Excel writes for itself
            number += 1
            header = text.readline()
        delimiter = said[1] if said else _delimiter_of(header)
        yield 0, [delimiter]
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
        lines = _without_nul(chain([header] if header else [], text))
        for record in csv.reader(lines, delimiter=delimiter, strict=True):
            number += 1
            if record and (len(record) > 1 or not record[0].isspace()):
                yield number, record
    except UnicodeError as error:
        raise DataError(
            f"{name}: after row {number} there are bytes that are not UTF-8 ({error}). "
            "It may be Latin-1: save the table as CSV with encoding UTF-8 (Excel: 'CSV UTF-8')."
        ) from None
    except csv.Error as error:
        said_of_it = f'{error}. A quote (") that is opened there may never be closed.'
        if "new-line character" in str(error):
            said_of_it = "a carriage return stands in the middle of it. Take it out, or put the value into quotes."
        raise DataError(f"{name}, row {number + 1}: {said_of_it}") from None
    finally:
        text.detach()


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    """Lines as they are; text never holds the character NUL."""
    for line in lines:
        if "\0" in line:
            raise csv.Error("the character NUL stands there: the file is damaged, or no text in UTF-8")
        yield line


def _delimiter_of(header: str) -> str:
    return max(_DELIMITERS, key=lambda one: len(next(csv.reader([header], delimiter=one), [])))


def _chunks(records: Iterator[Record], name: str, rows: int, keep_empty: bool) -> Iterator[TableChunk]:
    _, [delimiter] = next(records)
    decimal_comma = delimiter == ";"
    first = next(records, None)
    if first is None or not any(value.strip() for value in first[1]):
        raise DataError(f"{name} is empty; a table needs a first row with the names of its columns")
    columns = tuple(value.strip() for value in first[1])
    while columns and not columns[-1]:
        columns = columns[:-1]
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise DataError(f"{name} has more than one column called {twice[0]!r}; give each its own name")
    values: list[list[str]] = []
    numbers: list[int] = []
    started = False
    for number, record in records:
        if not keep_empty and not any(value.strip() for value in record):
            continue
        if len(record) != len(columns):
            record = _as_wide_as(columns, record, name, number)
        values.append(record)
        numbers.append(number)
        if len(values) == rows:
            yield TableChunk(columns, values, numbers, decimal_comma)
            values, numbers, started = [], [], True
    if values or not started:
        yield TableChunk(columns, values, numbers, decimal_comma)


def _as_wide_as(columns: Sequence[str], record: list[str], name: str, number: int) -> list[str]:
    """A row with too few cells, or with empty ones too many, as one that has as many as there are columns."""
    if any(value.strip() for value in record[len(columns) :]):
        raise DataError(
            f"{name}, row {number}: {len(record)} values for {len(columns)} columns "
            f"({record[len(columns)]!r} is too many). Put a value that contains the separator into quotes."
        )
    return (record + [""] * len(columns))[: len(columns)]
