"""The container of every packed set and every cached encoding: named flat arrays in one file.

Layout, all little-endian::

    8 bytes   magic "LSPE-SET"
    4 bytes   format version
    8 bytes   length of the header
    32 bytes  BLAKE2b-256 of the header
    header    JSON: {"meta": ..., "arrays": {name: {dtype, shape, offset, digest}}}
    arrays    each at a multiple of 64 bytes, row-major, with its own BLAKE2b-256 in the header

Nothing is pickled. Reading maps the file into memory; a set larger than the memory is no problem. Writing
goes to a temporary name first and is renamed when complete, so a half-written file never has the final
name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lspe.data.errors import CorruptFileError, DataError

MAGIC = b"LSPE-SET"
FORMAT_VERSION = 1
_PREFIX = struct.Struct("<8sIQ32s")
_ALIGNMENT = 64
_BLOCK = 1 << 22
_KINDS = "biuf"

Array = NDArray[Any]


def digest_of(*parts: bytes | memoryview | str) -> str:
    """BLAKE2b-256 over `parts`, in hexadecimal."""
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return digest.hexdigest()


def digest_of_file(path: Path, begin: int = 0, end: int | None = None) -> str:
    """BLAKE2b-256 of a file's content, or of some of its bytes, in hexadecimal."""
    digest = hashlib.blake2b(digest_size=32)
    with path.open("rb") as file:
        file.seek(begin)
        left = os.fstat(file.fileno()).st_size - begin if end is None else end - begin
        while block := file.read(min(left, _BLOCK)):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


@contextmanager
def open_npz(path: Path) -> Iterator[Mapping[str, Array]]:
    """The arrays of an ``.npz`` file, which is closed afterwards even if it turns out to be damaged."""
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            yield arrays
    except (
        zlib.error,
        NotImplementedError,
        RuntimeError,
    ) as error:  # or it looks like a locked archive
        raise zipfile.BadZipFile(str(error)) from error


@dataclass(frozen=True)
class ArrayFile:
    """An opened container: its arrays (mapped, read-only), their digests, and what the writer noted about
    them.
    """

    path: Path
    arrays: Mapping[str, Array]
    digests: Mapping[str, str]
    meta: Mapping[str, Any]


def open_arrays(path: str | os.PathLike[str], *, verify: bool = True) -> ArrayFile:
    """Map the arrays of `path`.

    The header's checksum and the file's length are always checked; with `verify` the content of each array
    is too (about one second for a gigabyte), by reading it: what is looked at in a mapped file counts as memory.
    """
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size or prefix[: len(MAGIC)] != MAGIC:
            raise CorruptFileError(
                f"{path} is not a packed set of lspe, or was cut off. Delete it and prepare it again."
            )
        _, version, header_size, header_digest = _PREFIX.unpack(prefix)
        if version != FORMAT_VERSION:
            raise CorruptFileError(
                f"{path} has format version {version}; this lspe reads version {FORMAT_VERSION}. "
                "Delete it and prepare it again, or use the version of lspe that wrote it."
            )
        header = file.read(header_size) if header_size <= size else b""
    if hashlib.blake2b(header, digest_size=32).digest() != header_digest:
        raise CorruptFileError(f"{path}: the header does not match its checksum. Delete it and prepare it again.")

    buffer = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    arrays, digests, end = {}, {}, size
    try:
        content = json.loads(header)
        meta = content["meta"]
        for name, entry in content["arrays"].items():
            dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
            start = entry["offset"]
            stop = start + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            if stop > size:
                raise CorruptFileError(f"{path} is cut off inside array {name!r}. Delete it and prepare it again.")
            if verify and digest_of_file(path, start, stop) != entry["digest"]:
                raise CorruptFileError(
                    f"{path}: array {name!r} does not match its checksum. Delete the file and prepare it again."
                )
            arrays[name] = buffer[start:stop].view(dtype).reshape(shape)
            digests[name] = entry["digest"]
            end = stop
    except CorruptFileError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise CorruptFileError(f"{path}: its header describes no arrays. Delete it and prepare it again.") from None
    if end != size:
        raise CorruptFileError(f"{path} goes on after its last array. Delete it and prepare it again.")
    return ArrayFile(path, arrays, digests, meta)


@dataclass
class _Column:
    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    file: BinaryIO
    rows: int = 0
    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=32))


class ArrayWriter:
    """Write a container piece by piece; memory holds only the piece at hand.

    Use it in a ``with`` block and call :meth:`finish` at its end; leaving the block without it (an error,
    Ctrl-C) removes every trace.

    >>> with ArrayWriter(path) as writer:
    ...     for piece in pieces:
    ...         writer.append("x", piece)
    ...     writer.finish({"name": "zinc"})
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._columns: dict[str, _Column] = {}

    def __enter__(self) -> ArrayWriter:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", suffix=".tmp", dir=self.path.parent))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for column in self._columns.values():
            column.file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def append(self, name: str, piece: Array) -> None:
        """Add rows to array `name`. The first piece fixes its type and the shape of a row."""
        piece = np.ascontiguousarray(piece)
        if piece.dtype.kind not in _KINDS:
            raise DataError(f"array {name!r} has type {piece.dtype}; only bool, integer and float arrays can be packed")
        column = self._columns.get(name)
        if column is None:
            file = (self._folder / str(len(self._columns))).open("w+b")
            column = _Column(piece.dtype.newbyteorder("<"), piece.shape[1:], file)
            self._columns[name] = column
        if piece.shape[1:] != column.row_shape or not np.can_cast(piece.dtype, column.dtype):
            raise DataError(
                f"array {name!r} began with rows of {column.dtype}{list(column.row_shape)} and goes on with "
                f"{piece.dtype}{list(piece.shape[1:])}; every piece must be the same"
            )
        data = piece.astype(column.dtype, copy=False).reshape(-1).view(np.uint8).data
        column.file.write(data)
        column.digest.update(data)
        column.rows += len(piece)

    def finish(self, meta: Mapping[str, Any]) -> None:
        """Put the arrays together under the final name."""
        header = self._header(meta)
        complete = self._folder / "complete"
        with complete.open("wb") as out:
            out.write(
                _PREFIX.pack(MAGIC, FORMAT_VERSION, len(header), hashlib.blake2b(header, digest_size=32).digest())
            )
            out.write(header)
            for column in self._columns.values():
                out.write(bytes(-out.tell() % _ALIGNMENT))
                column.file.seek(0)
                shutil.copyfileobj(column.file, out, _BLOCK)
            out.flush()
            os.fsync(out.fileno())
        os.replace(complete, self.path)
        _sync_folder(self.path.parent)

    def _header(self, meta: Mapping[str, Any]) -> bytes:
        """The header as JSON. Offsets are part of it, so it is padded to a length fixed beforehand."""
        arrays = {
            name: {
                "dtype": column.dtype.str,
                "shape": [column.rows, *column.row_shape],
                "offset": 0,
                "digest": column.digest.hexdigest(),
            }
            for name, column in self._columns.items()
        }
        content = {"meta": dict(meta), "arrays": arrays}
        room = len(json.dumps(content)) + 20 * len(arrays)
        offset = _PREFIX.size + room
        for entry in arrays.values():
            offset += -offset % _ALIGNMENT
            entry["offset"] = offset
            offset += np.dtype(entry["dtype"]).itemsize * int(np.prod(entry["shape"], dtype=np.int64))
        return json.dumps(content).encode().ljust(room)


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power failure, where the system knows how."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
