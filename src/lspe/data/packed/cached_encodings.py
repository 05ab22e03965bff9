"""Encodings of a whole set, computed once and kept beside its file: exact, or of the largest graphs estimated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from lspe.data.errors import CorruptFileError, DataError
from lspe.data.packed.cache import build_once
from lspe.data.packed.container import Array, ArrayWriter, digest_of, open_arrays
from lspe.data.packed.sets import ColumnLevel, PackedGraphs
from lspe.encodings import EncodingKind, check_encoding, encode, encode_pairs
from lspe.locations import cache_root, is_writable

_CACHE_VERSION = 1
_NODES_AT_ONCE = 200_000

LARGEST_EXACT = 20_000
"""Nodes of a graph up to which encodings are exact; of a larger one those are estimated that have an estimate."""


def encoding_column(graphs: PackedGraphs, name: str, k: int) -> tuple[ColumnLevel, str, Array]:
    """The level of an encoding's column, its name, and its values for every node of the whole set, :math:`[N, k]`, or
    for every edge, :math:`[E, k]`.
    """
    kind = check_encoding(name, k)
    level: ColumnLevel = "node" if kind.level == "node" else "edge"
    if kind.is_given:
        return level, kind.attribute, _given(graphs, kind, k)
    if graphs.path is None or graphs.structure_digest is None or kind.source is None:
        return level, kind.attribute, np.concatenate([*_compute(graphs, kind, k)])

    structure = graphs.structure_digest if not kind.source else digest_of(graphs.structure_digest, kind.source)
    note = {"structure": structure, "kind": kind.name, "k": k, "version": _CACHE_VERSION}
    how = ""
    if is_estimated(graphs, kind):
        how, note["largest_exact"] = "-estimated", LARGEST_EXACT
    path = _cache_path(graphs.path, f"{kind.name}{how}", k, structure)

    def build() -> None:
        with ArrayWriter(path) as writer:
            for part in _compute(graphs, kind, k):
                writer.append("encoding", part)
            writer.finish(note)

    def read() -> Array:
        file = open_arrays(path)
        if file.meta != note:
            raise CorruptFileError(f"{path} holds another encoding than its name says")
        return file.arrays["encoding"]

    return level, kind.attribute, build_once(path, build, read)


def is_estimated(graphs: PackedGraphs, kind: EncodingKind) -> bool:
    """Whether some of the graphs are so large that this encoding is estimated."""
    return kind.estimate is not None and np.diff(graphs.node_ptr).max(initial=0) > LARGEST_EXACT


def _cache_path(packed: Path, kind: str, k: int, structure: str) -> Path:
    kind = re.sub(r"[^\w-]", "_", kind)  # an import path has a colon
    name = f"{packed.stem}.{kind}{k}-{structure[:16]}-v{_CACHE_VERSION}.lspe"
    return (packed.parent if is_writable(packed.parent) else cache_root() / "encodings") / name


def _given(graphs: PackedGraphs, kind: EncodingKind, k: int) -> Array:
    """What the nodes have in the attribute of that name."""
    if kind.attribute not in graphs.node:
        raise DataError(
            f"{kind.name}: the nodes of the graphs have no {kind.attribute!r}; they have "
            f"{', '.join(graphs.node) or 'nothing'}"
        )
    column = graphs.node[kind.attribute].reshape(len(graphs.node[kind.attribute]), -1)
    if column.shape[1] != k:
        raise DataError(f"{kind.name}: {kind.attribute!r} has {column.shape[1]} columns, not k = {k}: set model.k")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        row = int((~np.isfinite(column)).any(1).argmax())
        graph = int(np.searchsorted(graphs.node_ptr, row, side="right")) - 1
        raise DataError(f"{kind.name}: graph {graph} has values in {kind.attribute!r} that are not finite")
    return column


def _compute(graphs: PackedGraphs, kind: EncodingKind, k: int) -> Iterator[Array]:
    """The encoding of all graphs in order, as many at once as make up some 200,000 nodes; the largest each alone."""
    yield np.empty((0, k), dtype=np.float32)
    begin, total = 0, len(graphs.node_ptr) - 1
    while begin < total:
        end = int(np.searchsorted(graphs.node_ptr, graphs.node_ptr[begin] + _NODES_AT_ONCE, side="right")) - 1
        too_large = np.flatnonzero(np.diff(graphs.node_ptr[begin : end + 1]) > LARGEST_EXACT)
        end = max(begin + int(too_large[0]) if len(too_large) else end, begin + 1)
        edges = slice(int(graphs.edge_ptr[begin]), int(graphs.edge_ptr[end]))
        first_node = graphs.node_ptr[begin:end] - graphs.node_ptr[begin]
        offset = np.repeat(first_node, np.diff(graphs.edge_ptr[begin : end + 1]))
        edge_index = torch.from_numpy(np.stack([graphs.source[edges] + offset, graphs.target[edges] + offset]))
        num_nodes = np.diff(graphs.node_ptr[begin : end + 1])
        batch = torch.from_numpy(np.repeat(np.arange(end - begin), num_nodes))
        compute = encode if kind.level == "node" else encode_pairs
        if kind.estimate is not None and len(num_nodes) == 1 and len(batch) > LARGEST_EXACT:
            yield kind.estimate(edge_index, len(batch), k).numpy()
        else:
            yield compute(kind, edge_index, len(batch), k, batch=batch).numpy()
        graphs.let_go()
        begin = end
