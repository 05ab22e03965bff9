"""Vectors of molecules, atoms and positions in files: npz or Parquet, written a piece at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from lspe.errors import UserError
from lspe.files import check_folder_of, complete_or_nothing
from lspe.predict.predictor import Predictions


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
    - ``.parquet``: one row a molecule, with ``row``, ``smiles``, ``graph``, ``atoms`` and ``positions`` as lists.
    """
    target = Path(path)
    kinds = {".npz": _Npz, ".parquet": _Parquet}
    if target.suffix.lower() not in kinds:
        raise UserError(f"{path}: vectors are written to a name that ends in .npz or .parquet")
    check_folder_of(target)
    with complete_or_nothing(target) as temporary:
        writer: Any = kinds[target.suffix.lower()](temporary)
        try:
            yield writer
            writer.finish()
        finally:
            writer.close()


class _Npz:
    """Each array grows in a file of its own; at the end they are put together as NumPy does it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = Path(tempfile.mkdtemp(prefix=".vectors.", suffix=".tmp", dir=path.parent))
        self.files: dict[str, tuple[BinaryIO, np.dtype[Any], tuple[int, ...]]] = {}
        self.rows: dict[str, int] = {}
        self._append("atom_ptr", np.zeros(1, dtype=np.int64))

    def write(self, first_row: int, smiles: Sequence[str], part: Predictions) -> None:
        atoms_before = self.rows.get("atom", 0)
        self._append("row", first_row + part.rows)
        self._append("graph", part.vectors.graph)
        self._append("atom", part.vectors.node)
        self._append("atom_ptr", atoms_before + np.cumsum(part.num_nodes))
        if part.vectors.position is not None:
            self._append("position", part.vectors.position)

    def _append(self, name: str, array: NDArray[Any]) -> None:
        if name not in self.files:
            self.files[name] = ((self.folder / name).open("w+b"), array.dtype, array.shape[1:])
            self.rows[name] = 0
        self.files[name][0].write(np.ascontiguousarray(array).data)
        self.rows[name] += len(array)

    def finish(self) -> None:
        with zipfile.ZipFile(self.path, "w") as archive:
            for name, (file, dtype, row_shape) in self.files.items():
                header = {"descr": dtype.str, "fortran_order": False, "shape": (self.rows[name], *row_shape)}
                file.seek(0)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array_header_1_0(member, header)
                    shutil.copyfileobj(file, member, 1 << 22)

    def close(self) -> None:
        for file, _, _ in self.files.values():
            file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Parquet:
    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

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
        self.writer = pq.ParquetWriter(path, self.schema)

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
        self.writer.write_table(pa.table(columns, schema=self.schema))

    def finish(self) -> None:
        """Nothing is left to do."""

    def close(self) -> None:
        self.writer.close()


def _vectors(rows: NDArray[np.float32]) -> Any:
    """[N, d] as N lists of d numbers."""
    import pyarrow as pa

    return _lists(pa.array(rows.reshape(-1)), np.arange(len(rows) + 1) * rows.shape[1])


def _lists(values: Any, offsets: NDArray[np.int64]) -> Any:
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
