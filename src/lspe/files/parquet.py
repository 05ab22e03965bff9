"""Parquet files, written a piece at a time."""

from typing import Any, Self


class ParquetWriter:
    """A Parquet file that grows by tables of the same columns; without a ``schema`` the first table says which."""

    def __init__(self, file: Any, schema: Any | None = None) -> None:
        self.file = file
        self._writer: Any = None
        if schema is not None:
            self._open(schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, table: Any) -> None:
        """Add the rows of a ``pyarrow.Table``."""
        if self._writer is None:
            self._open(table.schema)
        self._writer.write_table(table)

    def _open(self, schema: Any) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(self.file, schema)
