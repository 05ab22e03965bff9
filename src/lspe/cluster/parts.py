"""A table divided into parts that can be worked on one by one, and again where that went wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from lspe.data import TableChunk
from lspe.data.errors import DataError
from lspe.data.table.parquet import is_parquet
from lspe.data.table.reading import iter_parquet_chunks
from lspe.errors import UserError
from lspe.files.tables import open_table

ROWS_PER_PART = 20_000
"""As many are worked on again, at most, when a process was lost."""


@dataclass(frozen=True)
class Part:
    """The rows `begin` to `end` of a Parquet file. `first` is the number of the first one in the whole table, from 0.

    Parts of a table are numbered in its order, from 0. `decimal_comma`: see :class:`~lspe.data.TableChunk`.
    """

    number: int
    path: str
    begin: int
    end: int
    first: int
    decimal_comma: bool

    def chunks(self, rows: int) -> Iterator[TableChunk]:
        """The rows, so many at a time."""
        for chunk in iter_parquet_chunks(self.path, self.begin, self.end, rows=rows):
            yield replace(chunk, decimal_comma=self.decimal_comma)

    @property
    def file_name(self) -> str:
        """Of what becomes of the part: files in the order of their names are the table in its order."""
        return f"part-{self.number:06d}.parquet"


@dataclass(frozen=True)
class DividedTable:
    """A table in parts: its columns, and their types where they are known (a ``pyarrow.Schema``)."""

    columns: tuple[str, ...]
    parts: Sequence[Part]
    schema: Any | None

    @property
    def rows(self) -> int:
        """Of all parts."""
        return self.parts[-1].first + self.parts[-1].end - self.parts[-1].begin


def can_be_divided(source: str | os.PathLike[str]) -> bool:
    """Whether a source is a Parquet file, or a folder of them, whose rows can be read from wherever one wants."""
    path = Path(source)
    if os.path.isdir(path):
        return True
    if not os.path.isfile(path):
        return False
    with path.open("rb") as file:
        return is_parquet(file.read(4))


def divide_parquet(source: str | os.PathLike[str], rows_per_part: int) -> DividedTable:
    """The parts of a Parquet file, or of the files ``*.parquet`` in a folder one after the other, by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(source).absolute()
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{source} is a folder without files that end in .parquet")
    parts: list[Part] = []
    schema: Any = None
    first = 0
    for file in files:
        try:
            opened = pq.ParquetFile(file)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataError(f"{file} is a damaged Parquet file: {error}") from None
        schema = schema or opened.schema_arrow
        if not opened.schema_arrow.equals(schema):
            raise DataError(
                f"the columns of {file} and {files[0]} differ in names or types; files of one folder are one table"
            )
        rows = opened.metadata.num_rows
        for begin in range(0, rows, rows_per_part):
            end = min(begin + rows_per_part, rows)
            parts.append(Part(len(parts), str(file), begin, end, first + begin, decimal_comma=False))
        first += rows
    parts = parts or [Part(0, str(files[0]), 0, 0, 0, decimal_comma=False)]
    return DividedTable(next(parts[0].chunks(1)).columns, parts, schema)


def divide_rows(chunks: Iterator[TableChunk], folder: Path, rows_per_part: int) -> DividedTable:
    """The parts of a table that can only be read from its beginning: written to Parquet files in `folder` first."""
    chunk = next(chunks)
    columns = chunk.columns
    parts: list[Part] = []
    waiting = chain([chunk], chunks)
    first = 0
    while True:
        file = folder.absolute() / f"{len(parts):06d}.parquet"
        rows = 0
        with open_table(file, dict.fromkeys(columns, False)) as writer:
            for chunk in waiting:
                writer.write(chunk.rows)
                rows += len(chunk)
                if rows >= rows_per_part:
                    break
        if not rows and parts:
            file.unlink()
            return DividedTable(columns, parts, None)
        parts.append(Part(len(parts), str(file), 0, rows, first, chunk.decimal_comma))
        first += rows
        if rows < rows_per_part:
            return DividedTable(columns, parts, None)


def check_new_folder(folder: Path) -> None:
    """Refuse to mix what is written with what is there."""
    if not os.path.isdir(folder.parent):
        raise UserError(f"{folder}: there is no folder {folder.parent}; make it first")
    if os.path.isfile(folder):
        raise UserError(f"{folder} is a file, and a folder of Parquet files is to be written; name another one")
    if os.path.isdir(folder) and any(folder.iterdir()):
        raise UserError(f"the folder {folder} is not empty; remove it, or name another one")
