r"""Sets of graphs as flat arrays: one array for all nodes' features, one for all edges' sources, and so on.

Graph :math:`g` owns the rows ``node_ptr[g]:node_ptr[g+1]`` of every node array and
``edge_ptr[g]:edge_ptr[g+1]`` of every edge array. A batch is therefore a gather of rows, whatever the
number of graphs in it, and no graph is ever touched by Python on its own. Edges are sorted by target (then
source) once, when the set is made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from lspe.data.errors import DataError
from lspe.data.packed.assembly import as_batch, as_data, as_tensors
from lspe.data.packed.columns import check_columns
from lspe.data.packed.container import Array, ArrayFile, digest_of, open_arrays
from lspe.data.packed.mapped import let_go, mapped_bytes, memory_of_machine, read_ahead
from lspe.data.packed.pointers import Index, pointers, rows_of
from lspe.data.packed.targets import is_known, without_unknown
from lspe.data.packed.tensors import GraphTensors
from lspe.encodings.kinds import NONE

if TYPE_CHECKING:
    from torch_geometric.data import Batch, Data

ColumnLevel = Literal["node", "edge", "graph"]

LEVELS: tuple[ColumnLevel, ...] = ("node", "edge", "graph")
_USUAL_ORDER = ("x", "edge_index", "edge_attr", "y")
LARGE = 1 << 30
"""Bytes of a set's files beyond which they do not stay in this process's memory once they were looked at."""
_SHARE_OF_MEMORY = 0.5
"""How much of the machine's memory the files of a set may take before its graphs are read ahead of their use."""


@dataclass(frozen=True)
class PackedGraphs:
    r"""A set of graphs in flat arrays, in memory or mapped from a file.

    ``graphs[i]`` is a :class:`torch_geometric.data.Data`, ``graphs.batch(indices)`` a
    :class:`torch_geometric.data.Batch` of the graphs at `indices`, equal field by field to what PyG's own
    collation of the same ``Data`` gives. Integer columns come out as ``int64``, floating ones as
    ``float32``.

    Shapes, with :math:`G` graphs, :math:`N` nodes and :math:`E` edges in the whole set:

    - **node_ptr**, **edge_ptr**: :math:`[G + 1]`, where each graph's rows begin
    - **source**, **target**: :math:`[E]`, node numbers within their graph
    - **node**, **edge**, **graph**: columns by name, :math:`[N, *]`, :math:`[E, *]`, :math:`[G, *]`
    - **index**: which of the :math:`G` graphs this view shows, in which order; ``None`` for all
    - **known**: :math:`[N]`, :math:`[E]` or :math:`[G]`, which targets ``y`` this view knows; the others come out as
      unknown, NaN or class -1; ``None`` for all

    ``y`` is a column of graphs, of nodes or of edges, the level of the targets.

    A set with a file is pickled as the file's name, so that other processes map it too.
    """

    node_ptr: Index
    edge_ptr: Index
    source: Array
    target: Array
    node: Mapping[str, Array] = field(default_factory=dict)
    edge: Mapping[str, Array] = field(default_factory=dict)
    graph: Mapping[str, Array] = field(default_factory=dict)
    index: Index | None = None
    known: NDArray[np.bool_] | None = None
    path: Path | None = None
    structure_digest: str | None = None
    encodings: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_arrays(
        cls,
        num_nodes: ArrayLike,
        num_edges: ArrayLike,
        edge_index: ArrayLike,
        *,
        node: Mapping[str, Array] | None = None,
        edge: Mapping[str, Array] | None = None,
        graph: Mapping[str, Array] | None = None,
    ) -> PackedGraphs:
        r"""A set in memory, from the concatenated arrays of its graphs; sorts the edges by target and
        checks them.

        `num_nodes` and `num_edges` are counts per graph, :math:`[G]`. `edge_index`, :math:`[2, E]`, numbers
        nodes within the edge's graph. `node`, `edge` and `graph` are columns, :math:`[N, *]`,
        :math:`[E, *]` and :math:`[G, *]`.
        """
        node, edge, graph = dict(node or {}), dict(edge or {}), dict(graph or {})
        counts = np.asarray(num_nodes, dtype=np.int64)
        node_ptr, edge_ptr = pointers(counts), pointers(num_edges)
        source, target = np.asarray(edge_index).reshape(2, -1)
        check_columns(node, edge, graph, len(counts), int(node_ptr[-1]), int(edge_ptr[-1]))
        graph_of_edge = np.repeat(np.arange(len(counts)), np.diff(edge_ptr))
        outside = (np.minimum(source, target) < 0) | (np.maximum(source, target) >= counts[graph_of_edge])
        if outside.any():
            first = int(outside.argmax())
            number = int(graph_of_edge[first])
            raise DataError(
                f"graph {number} has an edge {int(source[first])} → {int(target[first])} but only "
                f"{int(counts[number])} nodes; nodes are numbered from 0 within each graph"
            )
        order = np.argsort((node_ptr[graph_of_edge] + target) * counts.max(initial=1) + source, kind="stable")
        return cls(
            node_ptr,
            edge_ptr,
            source[order],
            target[order],
            node,
            {name: column[order] for name, column in edge.items()},
            graph,
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> PackedGraphs:
        """Map a set from its file. A damaged file raises :class:`~lspe.data.errors.CorruptFileError`."""
        return cls.from_file(open_arrays(path, verify=verify))

    @classmethod
    def from_file(cls, file: ArrayFile) -> PackedGraphs:
        """The set inside an opened container."""
        columns: dict[str, dict[str, Array]] = {level: {} for level in LEVELS}
        for name, array in file.arrays.items():
            level, _, column = name.partition("/")
            if level in columns:
                columns[level][column] = array
        source, target = columns["edge"].pop("source"), columns["edge"].pop("target")
        return cls(
            pointers(file.arrays["num_nodes"]),
            pointers(file.arrays["num_edges"]),
            source,
            target,
            columns["node"],
            columns["edge"],
            columns["graph"],
            path=file.path,
            structure_digest=digest_of(
                *(file.digests[name] for name in ("num_nodes", "num_edges", "edge/source", "edge/target"))
            ),
        )

    def save(self, path: str | os.PathLike[str], meta: Mapping[str, Any] | None = None) -> PackedGraphs:
        """Write the set to `path` and give it back as mapped from there."""
        from lspe.data.packed.writer import PackedWriter

        with PackedWriter(path) as writer:
            writer.append(self)
            writer.finish(meta)
        return PackedGraphs.open(path, verify=False)

    def __len__(self) -> int:
        return len(self.node_ptr) - 1 if self.index is None else len(self.index)

    def __getitem__(self, i: int) -> Data:
        if not -len(self) <= i < len(self):
            raise IndexError(f"graph {i} of a set of {len(self)}")
        number = i % len(self) if self.index is None else int(self.index[i])
        return as_data(self, number)

    def __iter__(self) -> Iterator[Data]:
        return (self[i] for i in range(len(self)))

    def batch(self, indices: ArrayLike | Tensor | None = None) -> Batch:
        """The graphs at `indices` (all of the set if not given) as one PyG ``Batch``, without per-graph work."""
        return as_batch(self, self.numbers(indices))

    def tensors(self, indices: ArrayLike | Tensor | None = None) -> GraphTensors:
        """The same tensors without PyG, for a network that only looks at them."""
        return as_tensors(self, self.numbers(indices))

    def let_go(self) -> None:
        """Give back the memory that holds what was looked at of a large set that is mapped from its file."""
        if self._mapped_bytes > LARGE:
            let_go(self._columns)

    def read_ahead(self, indices: ArrayLike | Tensor) -> None:
        """Ask the system to read the graphs at `indices` from the set's file, which will be needed soon."""
        number = self.numbers(indices)
        rows = {
            "node": (self.node_ptr[number], self.node_ptr[number + 1]),
            "edge": (self.edge_ptr[number], self.edge_ptr[number + 1]),
            "graph": (number, number + 1),
        }
        read_ahead(self.target, *rows["edge"])
        for _, level, column in self.attributes:
            read_ahead(column, *rows[level])

    @property
    def outgrows_memory(self) -> bool:
        """Whether the files that the set is mapped from are too large to stay in memory."""
        return self._mapped_bytes > _SHARE_OF_MEMORY * memory_of_machine()

    def select(self, indices: ArrayLike | Tensor) -> Self:
        """A view of the graphs at `indices`, in that order; no graph is copied."""
        return replace(self, index=self.numbers(indices).copy())

    def with_known_targets(self, rows: ArrayLike) -> Self:
        """A view of the same graphs in which only the targets in these rows of the whole set's ``y`` are known."""
        known = np.zeros(len(self._targets), dtype=np.bool_)
        known[np.asarray(rows, dtype=np.int64)] = True
        return replace(self, known=known)

    def in_epoch(self, seed: int, epoch: int) -> Self:
        """The set as it is seen in an epoch of training: the same in each, unless something is drawn afresh."""
        return self

    def with_encoding(self, kind: str, k: int) -> Self:
        """The same graphs with an encoding of `k` columns: ``random_walk_pe`` on the nodes for ``rwpe``,
        ``edge_relative_walk_pe`` on the edges for ``rrwp``, ….

        Computed once for the whole set and kept beside its file; a set in memory keeps it in memory. ``none`` is the
        graphs as they are.
        """
        if kind == NONE:
            return self
        from lspe.data.packed.cached_encodings import encoding_column

        level, name, column = encoding_column(self, kind, k)
        encodings = (*self.encodings, (kind, k))
        if level == "node":
            return replace(self, node={**self.node, name: column}, encodings=encodings)
        return replace(self, edge={**self.edge, name: column}, encodings=encodings)

    def with_encodings(self, encodings: Iterable[tuple[str, int]]) -> Self:
        """The same graphs with several encodings, each a kind and its number of columns."""
        graphs = self
        for kind, k in encodings:
            graphs = graphs.with_encoding(kind, k)
        return graphs

    def numbers(self, indices: ArrayLike | Tensor | None = None) -> Index:
        """Where the graphs at `indices` of this view stand in the whole set."""
        if indices is None:
            return np.arange(len(self)) if self.index is None else self.index
        chosen = np.asarray(indices)
        if chosen.size == 0:
            return np.empty(0, dtype=np.int64)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise IndexError(f"graphs are chosen by a list of integers, not by {chosen.dtype}{list(chosen.shape)}")
        first, last = int(chosen.min()), int(chosen.max())
        if first < -len(self) or last >= len(self):
            raise IndexError(f"graphs {first} … {last} asked of a set of {len(self)}")
        chosen = chosen.astype(np.int64, copy=False)
        if self.index is not None:
            return self.index[chosen]
        return chosen if first >= 0 else np.where(chosen < 0, chosen + len(self), chosen)

    @property
    def num_nodes(self) -> Index:
        """Nodes of each graph in this view."""
        return np.diff(self.node_ptr)[self.numbers()]

    @property
    def num_edges(self) -> Index:
        """Directed edges of each graph in this view."""
        return np.diff(self.edge_ptr)[self.numbers()]

    @property
    def y(self) -> Array:
        """The targets of this view, one row per graph, node or edge; unknown ones are NaN or class -1."""
        level: ColumnLevel = "node" if "y" in self.node else "edge" if "y" in self.edge else "graph"
        rows = self.rows(level)
        y = self._targets[rows]
        return y if self.known is None else without_unknown(y, self.known[rows])

    @property
    def known_targets(self) -> NDArray[np.bool_]:
        """Which rows of :attr:`y` have a target that is known."""
        return is_known(self.y)

    def column(self, name: str) -> Array:
        """A graph column of this view, one row per graph."""
        if name not in self.graph:
            raise DataError(f"these graphs have no column {name!r}; they have {', '.join(self.graph) or 'none'}")
        return self.graph[name][self.numbers()]

    def rows(self, level: ColumnLevel) -> Index:
        """Where the nodes, edges or graphs of this view stand in the columns of the whole set."""
        number = self.numbers()
        if level == "graph":
            return number
        (nodes, edges), _, _ = rows_of(self.begins, number)
        return nodes if level == "node" else edges

    @property
    def _targets(self) -> Array:
        """The targets of the whole set."""
        for columns in (self.graph, self.node, self.edge):
            if "y" in columns:
                return columns["y"]
        raise DataError("these graphs have no targets y")

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            return PackedGraphs, tuple(getattr(self, one.name) for one in fields(self))
        return _reopen, (self.path, self.encodings, self.index, self.known)

    @cached_property
    def begins(self) -> Index:
        """:math:`[2, G + 1]`: where each graph's nodes and edges begin."""
        return np.stack([self.node_ptr, self.edge_ptr])

    @cached_property
    def _mapped_bytes(self) -> int:
        return mapped_bytes(self._columns)

    @property
    def _columns(self) -> tuple[Array, ...]:
        return (self.source, self.target, *self.node.values(), *self.edge.values(), *self.graph.values())

    @cached_property
    def attributes(self) -> tuple[tuple[str, ColumnLevel, Array], ...]:
        """Every attribute of a ``Data`` with its level and column, in PyG's order."""
        by_name: dict[str, tuple[ColumnLevel, Array]] = {"edge_index": ("edge", self.source)}
        for level in LEVELS:
            by_name |= {name: (level, column) for name, column in getattr(self, level).items()}
        usual = [name for name in _USUAL_ORDER if name in by_name]
        return tuple((name, *by_name[name]) for name in usual + [name for name in by_name if name not in usual])


def _reopen(
    path: Path, encodings: tuple[tuple[str, int], ...], index: Index | None, known: NDArray[np.bool_] | None
) -> PackedGraphs:
    return replace(PackedGraphs.open(path, verify=False).with_encodings(encodings), index=index, known=known)
