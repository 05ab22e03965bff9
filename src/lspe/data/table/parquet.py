"""Parquet files as rows of text."""

from __future__ import annotations

import io
from collections.abc import Generator
from typing import BinaryIO

from lspe.data.errors import DataError

Record = tuple[int, list[str]]
"""The number of a row, as a spreadsheet would show it, and its values."""


def parquet_records(file: BinaryIO, name: str) -> Generator[Record]:
    """Row number and values of each row of a Parquet file, its column names first."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    seekable = file if file.seekable() else io.BytesIO(file.read())
    try:
        table = pq.ParquetFile(seekable)
        yield 1, list(table.schema_arrow.names)
        number = 1
        for batch in table.iter_batches(10_000):
            columns = [
                ["" if value is None else str(value) for value in column.to_pylist()] for column in batch.columns
            ]
            for values in zip(*columns, strict=True):
                number += 1
                yield number, list(values)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{name} is a damaged Parquet file: {error}") from None
