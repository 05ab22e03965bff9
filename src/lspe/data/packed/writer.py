"""Make packed sets: written a part at a time, or put together in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from lspe.data.errors import DataError
from lspe.data.packed.container import Array, ArrayWriter
from lspe.data.packed.links import LinkGraphs
from lspe.data.packed.pointers import pointers
from lspe.data.packed.sets import LEVELS, PackedGraphs


class PackedWriter:
    """Write a set of any size, a part at a time, each part a :class:`PackedGraphs` in memory.

    >>> with PackedWriter(path) as writer:
    ...     for part in parts:
    ...         writer.append(part)
    ...     writer.finish({"name": "molpcba"})
    """

    def __init__(self, path: str | os.PathLike[str], *, index_dtype: type[np.unsignedinteger[Any]] = np.uint32) -> None:
        self.index_dtype = index_dtype
        self._arrays = ArrayWriter(path)

    def __enter__(self) -> PackedWriter:
        self._arrays.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._arrays.__exit__(kind, error, trace)

    def append(self, part: PackedGraphs) -> None:
        """Add the graphs of `part` (all of them, whatever its view) behind those already written."""
        if part.index is not None:
            raise DataError("only whole sets can be written, not a selection of one")
        num_nodes = np.diff(part.node_ptr)
        limit = int(np.iinfo(self.index_dtype).max)
        if len(part) and num_nodes.max() > limit:
            raise DataError(f"graph {int(num_nodes.argmax())} has {num_nodes.max()} nodes, more than {limit}")
        self._arrays.append("num_nodes", num_nodes.astype(np.int64))
        self._arrays.append("num_edges", np.diff(part.edge_ptr).astype(np.int64))
        self._arrays.append("edge/source", part.source.astype(self.index_dtype))
        self._arrays.append("edge/target", part.target.astype(self.index_dtype))
        for level in LEVELS:
            for name, column in getattr(part, level).items():
                self._arrays.append(f"{level}/{name}", column)
        if isinstance(part, LinkGraphs):
            self._arrays.append("num_pairs", np.diff(part.pair_ptr))
            for name, ends in zip(("source", "target"), part.pairs, strict=True):
                self._arrays.append(f"pair/{name}", ends.astype(self.index_dtype))
            self._arrays.append("pair/y", part.joined)

    def finish(self, meta: Mapping[str, Any] | None = None, arrays: Mapping[str, Array] | None = None) -> None:
        """Complete the file. `arrays` are kept as they are under their names (the splits, for instance)."""
        for name, array in (arrays or {}).items():
            self._arrays.append(name, array)
        self._arrays.finish(meta or {})


def concatenate(parts: Iterable[PackedGraphs]) -> PackedGraphs:
    """One set in memory out of several with the same columns."""
    parts = list(parts)
    if not parts:
        raise DataError("there is no graph to put together")
    levels: dict[str, dict[str, Array]] = {
        level: {
            name: np.concatenate([getattr(part, level)[name] for part in parts]) for name in getattr(parts[0], level)
        }
        for level in LEVELS
    }
    return PackedGraphs(
        pointers(np.concatenate([np.diff(part.node_ptr) for part in parts])),
        pointers(np.concatenate([np.diff(part.edge_ptr) for part in parts])),
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        levels["node"],
        levels["edge"],
        levels["graph"],
    )
