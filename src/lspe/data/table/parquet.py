"""Parquet files as rows of text."""

from __future__ import annotations

import io
from collections.abc import Generator
from itertools import accumulate
from typing import Any, BinaryIO

from lspe.data.errors import DataError

Record = tuple[int, list[str]]
"""The number of a row, as a spreadsheet would show it, and its values."""

_AT_ONCE = 10_000


def is_parquet(start: bytes) -> bool:
    """Whether a file that begins with these bytes is a Parquet file."""
    return start.startswith(b"PAR1")


def parquet_records(file: BinaryIO, name: str, begin: int = 0, end: int | None = None) -> Generator[Record]:
    """Row number and values of each row of a Parquet file, its column names first.

    With `begin` and `end` (from 0) only of those rows: what is before them is not read where it is in row groups of
    its own.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    seekable = file if file.seekable() else io.BytesIO(file.read())
    try:
        table = pq.ParquetFile(seekable)
        yield 1, list(table.schema_arrow.names)
        end = table.metadata.num_rows if end is None else end
        groups, first = _groups_with(table.metadata, begin, end)
        for batch in table.iter_batches(_AT_ONCE, row_groups=groups):
            wanted = batch.slice(max(0, begin - first), max(0, end - max(first, begin)))
            columns = [
                ["" if value is None else str(value) for value in column.to_pylist()] for column in wanted.columns
            ]
            for number, values in enumerate(zip(*columns, strict=True), start=max(first, begin) + 2):
                yield number, list(values)
            first += len(batch)
            if first >= end:
                break
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{name} is a damaged Parquet file: {error}") from None


def _groups_with(metadata: Any, begin: int, end: int) -> tuple[list[int], int]:
    """The row groups that hold rows `begin` to `end`, and the number of their first row."""
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    ends = list(accumulate(sizes))
    groups = [group for group, size in enumerate(sizes) if ends[group] > begin and ends[group] - size < end]
    return groups, ends[groups[0]] - sizes[groups[0]] if groups else 0
