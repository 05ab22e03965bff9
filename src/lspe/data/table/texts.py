"""The text in a column of a table, kept on disk: of each row only a few bytes are in memory."""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from lspe.data.packed.pointers import Index
from lspe.locations import cache_root, is_writable

AT_ONCE = 10_000
"""Rows that are text in memory together."""

_UTF8 = ("utf-8", "surrogatepass")


class TextColumn(Sequence[str]):
    """Text of R rows, mapped from a file without a name that ends with it.

    Shapes: `starts` and `lengths` [R], in bytes of UTF-8.
    """

    def __init__(self, content: mmap.mmap | bytes, starts: Index, lengths: NDArray[np.uint32]) -> None:
        self._content, self._starts, self._lengths = content, starts, lengths

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextColumn:
        """A column of texts that are at hand."""
        with TextColumnWriter() as writer:
            writer.append(texts)
            return writer.finish()

    def select(self, rows: Index | NDArray[np.bool_]) -> TextColumn:
        """The text of some rows, in the order in which they are named."""
        return TextColumn(self._content, self._starts[rows], self._lengths[rows])

    def digest(self) -> str:
        """BLAKE2b-256 of all texts, with a NUL behind each, in hexadecimal."""
        digest = hashlib.blake2b(digest_size=32)
        for begin in range(0, len(self), AT_ONCE):
            digest.update("".join(f"{text}\0" for text in self[begin : begin + AT_ONCE]).encode(*_UTF8))
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if not isinstance(index, slice):
            return self._text(int(self._starts[index]), int(self._lengths[index]))
        return list(map(self._text, self._starts[index].tolist(), self._lengths[index].tolist()))

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, len(self), AT_ONCE):
            yield from self[begin : begin + AT_ONCE]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(other) != len(self):
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(one == another for one, another in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return TextColumn.of, (list(self),)

    def _text(self, start: int, length: int) -> str:
        return str(self._content[start : start + length], *_UTF8)


class TextColumnWriter:
    """Write a column of any length, some rows at a time."""

    def __init__(self) -> None:
        folder = cache_root()
        usable = is_writable(folder)  # else where temporary files are, which may be memory
        if usable:
            folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder if usable else None)  # noqa: SIM115 (closed by __exit__)
        self._lengths = array("I")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, texts: Iterable[str]) -> None:
        """Add rows."""
        encoded = [text.encode(*_UTF8) for text in texts]
        self._lengths.extend(map(len, encoded))
        self._file.write(b"".join(encoded))

    def finish(self) -> TextColumn:
        """All that was added, as a column that does not need this writer any more."""
        lengths = np.array(self._lengths, dtype=np.uint32)
        ends = np.cumsum(lengths, dtype=np.int64)
        content: mmap.mmap | bytes = b""
        if len(ends) and ends[-1]:
            self._file.flush()
            content = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return TextColumn(content, ends - lengths, lengths)
