"""Where rows to predict come from: tables in files, SMILES line by line, the standard input, the command line."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from lspe.data import DataError, TableChunk, iter_table_chunks
from lspe.data.table.columns import find_smiles_column
from lspe.predict.molecules import AT_ONCE, pieces_of

SMILES, NAME = "smiles", "name"
_LINE_SUFFIXES = (".smi", ".smiles", ".smi.gz", ".smiles.gz")
Path_ = str | os.PathLike[str]


def iter_rows(source: Path_, smiles_column: str | None) -> Iterator[TableChunk]:
    """The rows of a table, of a file of SMILES (.smi), or of either on the standard input (``-``).

    Lines are taken for SMILES where the first one is a molecule; else it holds the names of a table's columns.
    """
    if str(source) == "-" and smiles_column is None and _begins_with_a_molecule(_first_line_of_stdin()):
        yield from _lines(sys.stdin.buffer, "the standard input")
    elif str(source).lower().endswith(_LINE_SUFFIXES):
        yield from _lines(_lines_of_file(Path(source)), str(source))
    else:
        yield from iter_table_chunks(source, rows=AT_ONCE, keep_empty=True)


def chunks_of(smiles: Iterable[str]) -> Iterator[TableChunk]:
    """SMILES as the only column of a table."""
    for some in pieces_of(enumerate(smiles, start=1)):
        yield TableChunk((SMILES,), [[text] for _, text in some], [number for number, _ in some])


def column_with_smiles(columns: tuple[str, ...], given: str | None, trained_on: str | None, name: str) -> str:
    """The column ``given``, else the one of the name the run was trained with, else the one whose name says so."""
    if given is None and trained_on in columns:
        return str(trained_on)
    return find_smiles_column(columns, given, name)


def count_rows(source: Path_) -> int | None:
    """About how many rows there are, for a progress bar; ``None`` where only reading would tell."""
    path = Path(source)
    if not path.is_file() or ".sdf" in path.suffixes:
        return None
    with path.open("rb") as file:
        start = file.read(4)
        if start == b"PAR1":
            import pyarrow.parquet as pq

            return int(pq.ParquetFile(path).metadata.num_rows)
        if start[:2] in (b"\x1f\x8b", b"PK"):
            return None
        return start.count(b"\n") + sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 22), b"")) - 1


def _lines(lines: Iterable[bytes], source: str) -> Iterator[TableChunk]:
    """A SMILES a line, and behind it a name where the first line has one."""
    numbered = ((number, line.decode("utf-8", "replace").strip()) for number, line in enumerate(lines, start=1))
    filled = ((number, line) for number, line in numbered if line)
    first = next(filled, None)
    if first is None:
        raise DataError(f"{source} is empty")
    with_names = len(_split(first[1])) == 2
    columns = (SMILES, NAME) if with_names else (SMILES,)
    for some in pieces_of(chain([first], filled)):
        rows = [[*_split(line), ""][:2] if with_names else [line] for _, line in some]
        yield TableChunk(columns, rows, [number for number, _ in some])


def _split(line: str) -> list[str]:
    """A SMILES and the name behind it; a CXSMILES extension (``|...|``) belongs to the SMILES."""
    smiles, *rest = line.split(maxsplit=1)
    return [line] if not rest or rest[0].startswith("|") else [smiles, rest[0]]


def _first_line_of_stdin() -> str:
    """What is there to read next, without reading it."""
    buffer: Any = sys.stdin.buffer
    if hasattr(buffer, "peek"):
        start = bytes(buffer.peek(1))
    else:
        start = buffer.readline()
        buffer.seek(0)
    return start.partition(b"\n")[0].decode("utf-8", "replace")


def _begins_with_a_molecule(line: str) -> bool:
    from lspe.data.errors import MoleculeError
    from lspe.data.molecules.smiles import parse

    words = line.split(maxsplit=1)
    try:
        return bool(words) and parse(words[0]) is not None
    except MoleculeError:
        return False


def _lines_of_file(path: Path) -> Iterator[bytes]:
    if not path.is_file():
        raise DataError(f"{path} does not exist")
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or was cut off: {error}. Get the file again.") from None
