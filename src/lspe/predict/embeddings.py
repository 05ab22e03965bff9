"""Vectors of molecules, atoms and positions in files: npz or Parquet, written a piece at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lspe.errors import UserError
from lspe.files import check_folder_of, complete_or_nothing
from lspe.files.npz import NpzWriter
from lspe.files.parquet import ParquetWriter
from lspe.predict.predictions import Predictions


class EmbeddingsWriter(Protocol):
    """Something vectors are written to."""

    def write(self, first_row: int, smiles: Sequence[str], part: Predictions) -> None:
        """Add the vectors of a piece whose molecules begin at ``first_row`` of the table (from 0)."""


@contextmanager
def open_embeddings(path: str | os.PathLike[str]) -> Iterator[EmbeddingsWriter]:
    """A file for vectors; molecules that could not be read are left out.

    - ``.npz``: ``row`` [M] (of the table, from 0), ``graph`` [M, d], ``atom_ptr`` [M + 1] (molecule m has the rows
      ``atom_ptr[m]`` to ``atom_ptr[m + 1]``), ``atom`` [N, d] and, where the network has positions,
      ``position`` [N, k];
    - ``.parquet``: one row per molecule, with ``row``, ``smiles``, ``graph``, ``atoms`` and ``positions`` as lists.
    """
    target = Path(path)
    kinds: dict[str, Callable[[ExitStack, Path], EmbeddingsWriter]] = {".npz": _ToNpz, ".parquet": _ToParquet}
    if target.suffix.lower() not in kinds:
        raise UserError(f"{path}: vectors are written to a name that ends in .npz or .parquet")
    check_folder_of(target)
    with complete_or_nothing(target) as temporary, ExitStack() as stack:
        yield kinds[target.suffix.lower()](stack, temporary)


class _ToNpz:
    def __init__(self, stack: ExitStack, path: Path) -> None:
        self.writer = stack.enter_context(NpzWriter(path))
        self.writer.append("atom_ptr", np.zeros(1, dtype=np.int64))

    def write(self, first_row: int, smiles: Sequence[str], part: Predictions) -> None:
        atoms_before = self.writer.rows.get("atom", 0)
        self.writer.append("row", first_row + part.rows)
        self.writer.append("graph", part.vectors.graph)
        self.writer.append("atom", part.vectors.node)
        self.writer.append("atom_ptr", atoms_before + np.cumsum(part.num_nodes))
        if part.vectors.position is not None:
            self.writer.append("position", part.vectors.position)


class _ToParquet:
    def __init__(self, stack: ExitStack, path: Path) -> None:
        import pyarrow as pa

        vector = pa.list_(pa.float32())
        self.schema = pa.schema(
            {
                "row": pa.int64(),
                "smiles": pa.string(),
                "graph": vector,
                "atoms": pa.list_(vector),
                "positions": pa.list_(vector),
            }
        )
        self.writer = stack.enter_context(ParquetWriter(path, self.schema))

    def write(self, first_row: int, smiles: Sequence[str], part: Predictions) -> None:
        import pyarrow as pa

        of_molecule = np.concatenate([[0], np.cumsum(part.num_nodes)])
        vectors = part.vectors
        positions = pa.nulls(len(part.rows), self.schema.field("positions").type)
        if vectors.position is not None:
            positions = _lists(_vectors(vectors.position), of_molecule)
        columns = [
            pa.array(first_row + part.rows),
            pa.array([smiles[row] for row in part.rows.tolist()], pa.string()),
            _vectors(vectors.graph),
            _lists(_vectors(vectors.node), of_molecule),
            positions,
        ]
        self.writer.write(pa.table(columns, schema=self.schema))


def _vectors(rows: NDArray[np.float32]) -> Any:
    """[N, d] as N lists of d numbers."""
    import pyarrow as pa

    return _lists(pa.array(rows.reshape(-1)), np.arange(len(rows) + 1) * rows.shape[1])


def _lists(values: Any, offsets: NDArray[np.int64]) -> Any:
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
