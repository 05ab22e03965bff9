"""What is held in memory of arrays that are mapped from files: given back when it was used, read before it is needed.

The system does both by itself, but late: what was looked at counts as this process's memory until others need it, and a
row that is not in memory yet is read, and waited for, when it is looked at.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index

_CAN_ADVISE = hasattr(mmap, "MADV_DONTNEED")  # not on Windows


def let_go(arrays: Iterable[Array]) -> None:
    """Give back the memory that holds what was looked at of mapped arrays; it is read again where it is needed."""
    for mapping in {id(one): one for one in map(_mapping, arrays) if one is not None}.values():
        mapping.madvise(mmap.MADV_DONTNEED)


def read_ahead(array: Array, begin: Index, end: Index) -> None:
    """Ask the system to read the rows ``begin[i]:end[i]`` of a mapped array, without waiting for it."""
    mapping = _mapping(array)
    if mapping is None or not array.size:
        return
    first = _address(array) - _address(np.frombuffer(mapping, dtype=np.uint8))
    row = array.nbytes // len(array)
    for start, length in pages_of(first + begin * row, first + end * row):
        mapping.madvise(mmap.MADV_WILLNEED, start, length)


def pages_of(begin: Index, end: Index) -> list[tuple[int, int]]:
    """Where the page begins that each range of bytes begins in, and how long it is from there; none for none."""
    some = end > begin
    starts = begin[some] // mmap.PAGESIZE * mmap.PAGESIZE
    return list(zip(starts.tolist(), (end[some] - starts).tolist(), strict=True))


def mapped_bytes(arrays: Iterable[Array]) -> int:
    """The size of all files that arrays are mapped from."""
    return sum(len(one) for one in {id(one): one for one in map(_mapping, arrays) if one is not None}.values())


def memory_of_machine() -> int:
    """Bytes; very many where nobody says."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    except (AttributeError, ValueError, OSError):
        return 1 << 62


def _mapping(array: Any) -> mmap.mmap | None:
    """What a mapped array is a view of, if it is that and was opened for reading only."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.mode != "r":
            return None
        array = array.base
    return array if _CAN_ADVISE and isinstance(array, mmap.mmap) else None


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
