"""Arrays in NumPy's ``.npz``, written a piece at a time so that they need not fit into memory."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray


class NpzWriter:
    """Named arrays that grow by rows, each in a file of its own; put together as NumPy does it when all went well.

    An array of text is as wide as its longest entry, which is known only at the end: until then its parts have widths
    of their own.

    >>> with NpzWriter(path) as writer:
    ...     writer.append("encoding", first)
    ...     writer.append("encoding", second)
    """

    def __init__(self, path: Path, *, compressed: bool = False) -> None:
        self.path = path
        self.compression = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        self.rows: dict[str, int] = {}
        self._folder = Path(tempfile.mkdtemp(prefix=".arrays.", suffix=".tmp", dir=path.parent))
        self._files: dict[str, tuple[BinaryIO, np.dtype[Any], tuple[int, ...]]] = {}
        self._texts: dict[str, list[tuple[int, np.dtype[np.str_]]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            for file, _dtype, _shape in self._files.values():
                file.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def append(self, name: str, array: NDArray[Any]) -> None:
        """Add rows to the array ``name``; the first ones say its type and the shape of a row."""
        self.rows[name] = self.rows.get(name, 0) + len(array)
        if array.dtype.kind == "U":
            self._texts.setdefault(name, []).append((len(array), array.dtype))
        if name not in self._files:
            self._files[name] = ((self._folder / name).open("w+b"), array.dtype, array.shape[1:])
        self._files[name][0].write(np.ascontiguousarray(array).data)

    def _finish(self) -> None:
        with zipfile.ZipFile(self.path, "w", self.compression) as archive:
            for name, (file, dtype, row_shape) in self._files.items():
                parts = self._texts.get(name, [])
                widest = max((part for _, part in parts), key=lambda part: part.itemsize, default=dtype)
                header = {"descr": widest.str, "fortran_order": False, "shape": (self.rows[name], *row_shape)}
                file.seek(0)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array_header_1_0(member, header)
                    for count, narrow in parts:
                        text = np.frombuffer(file.read(count * narrow.itemsize), narrow)
                        member.write(text.astype(widest).tobytes())
                    shutil.copyfileobj(file, member, 1 << 22)
