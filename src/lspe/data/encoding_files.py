"""Encodings of a table of molecules, or of a graph file, written to Parquet or npz."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.data.errors import DataError, shown
from lspe.data.graphs.files import is_graph_file, read_graph_file
from lspe.data.molecules.conversion import smiles_to_graphs
from lspe.data.progress import progress_bar
from lspe.data.table.columns import find_smiles_column
from lspe.data.table.reading import iter_table_chunks
from lspe.encodings import EncodingKind, all_pairs, check_encoding, encode, encode_pairs
from lspe.features import OGBFeatures
from lspe.files import check_folder_of, complete_or_nothing
from lspe.files.npz import NpzWriter
from lspe.files.parquet import ParquetWriter

_ROWS = 20_000
_ROWS_OF_PAIRS = 1_000
_TABLE_COLUMNS = ("molecule", "smiles", "atom")
_GRAPH_COLUMNS = ("graph", "file", "node")
_OTHER: dict[tuple[str, ...], str] = {_TABLE_COLUMNS: "other_atom", _GRAPH_COLUMNS: "other_node"}


@dataclass(frozen=True)
class EncodedPiece:
    r"""The encodings of some graphs, one below the other.

    `names` are the SMILES of a table's rows, or the file's name; `reasons` says why row i of these is no graph.

    Shapes, with :math:`G` graphs and :math:`N` nodes, or pairs of nodes, of all of them:
        - **counts:** :math:`[G]`, nodes or pairs of each, zero where there is a reason
        - **nodes:** one or two columns :math:`[N]`, numbers of atoms, names of other nodes
        - **encoding:** :math:`[N, k]`
    """

    names: list[str]
    counts: NDArray[np.int64]
    nodes: tuple[NDArray[Any], ...]
    encoding: NDArray[np.float32]
    reasons: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Written:
    """What was written: rows of the source, how many could be encoded, how many nodes (or pairs) they have, and the
    first reason why one could not.
    """

    rows: int
    encoded: int
    nodes: int
    first_reason: str | None


def write_encodings(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    encoding: str = "rwpe",
    k: int = 16,
    smiles_column: str | None = None,
    processes: int | None = None,
) -> Written:
    """Encode every molecule of a table (``-`` is the standard input), or the graph in a graph file.

    A Parquet file has one row an atom: ``molecule`` (the row of the table, from 0), ``smiles``, ``atom``, the columns
    ``rwpe_1`` … and ``reason``; a molecule that cannot be read has one row with nothing but the reason. It is written
    a piece at a time, so a table of any length fits into memory. (Of a graph file the first three are called
    ``graph``, ``file`` and ``node``, the node's name.) An npz file has the arrays ``encoding`` [N, k],
    ``offsets`` [G + 1] (graph g has the rows ``offsets[g]`` to ``offsets[g + 1]``), ``names`` [G], ``nodes`` [N] and
    ``reasons`` [G].

    An encoding of pairs has a row for every two atoms in both orders, and for each atom with itself; the second is in
    the column ``other_atom`` (``other_node``; ``others`` in an npz file).

    ``processes`` read molecules; as many as there are cores if not given.
    """
    target = Path(out)
    sinks: dict[str, Callable[[ExitStack, Path, tuple[str, ...]], Sink]] = {".parquet": ParquetSink, ".npz": NpzSink}
    if target.suffix.lower() not in sinks:
        raise DataError(f"{out}: encodings are written to a file that ends in .parquet or .npz")
    check_folder_of(target)
    kind = check_encoding(encoding, k)
    if is_graph_file(source):
        columns, pieces = columns_of(kind, k, _GRAPH_COLUMNS), _graph_file(source, kind, k)
    else:
        columns, pieces = columns_of(kind, k), _table(source, smiles_column, kind, k, processes)
    with complete_or_nothing(target) as temporary, ExitStack() as stack:
        sink = sinks[target.suffix.lower()](stack, temporary, columns)
        return write_pieces(sink, pieces)


def columns_of(kind: EncodingKind, k: int, places: tuple[str, ...] = _TABLE_COLUMNS) -> tuple[str, ...]:
    """The names of a Parquet file's columns: `places` of nodes or pairs, the encoding's, and the reason."""
    others = (_OTHER[places],) if kind.level == "pair" else ()
    return (*places, *others, *(f"{kind.name}_{column}" for column in range(1, k + 1)), "reason")


def write_pieces(sink: Sink, pieces: Iterable[EncodedPiece], first_row: int = 0) -> Written:
    """Write encodings whose first row is number `first_row` of the source."""
    rows = encoded = nodes = 0
    first_reason: str | None = None
    for piece in pieces:
        sink.write(piece, first_row + rows)
        for row, reason in sorted(piece.reasons.items()):
            first_reason = first_reason or f"molecule {first_row + rows + row}, {shown(piece.names[row])} {reason}"
        rows += len(piece.names)
        encoded += len(piece.names) - len(piece.reasons)
        nodes += len(piece.encoding)
    return Written(rows, encoded, nodes, first_reason)


def _table(
    source: str | os.PathLike[str], smiles_column: str | None, kind: EncodingKind, k: int, processes: int | None
) -> Iterator[EncodedPiece]:
    with progress_bar("molecules", None) as advance:
        for chunk in iter_table_chunks(source, rows=rows_at_once(kind), keep_empty=True):
            smiles = chunk.column(find_smiles_column(chunk.columns, smiles_column, str(source)))
            yield encode_molecules(smiles, kind, k, processes)
            advance(len(smiles))


def rows_at_once(kind: EncodingKind) -> int:
    """How many molecules are encoded together, so that their encodings fit into memory."""
    return _ROWS if kind.level == "node" else _ROWS_OF_PAIRS


def encode_molecules(smiles: list[str], kind: EncodingKind, k: int, processes: int | None = None) -> EncodedPiece:
    """The encodings of some molecules."""
    found = smiles_to_graphs(smiles, OGBFeatures(), processes=processes)
    batch = found.graphs.batch()
    encoding, places = _encode(kind, batch.edge_index, k, batch=batch.batch)
    counts = np.zeros(len(smiles), dtype=np.int64)
    counts[found.rows] = np.diff(found.graphs.node_ptr) ** (1 if kind.level == "node" else 2)
    first = (batch.ptr[batch.batch])[places[0]]
    nodes = tuple((place - first).numpy() for place in places)
    return EncodedPiece(smiles, counts, nodes, encoding.numpy(), found.reasons)


def _graph_file(source: str | os.PathLike[str], kind: EncodingKind, k: int) -> Iterator[EncodedPiece]:
    graph = read_graph_file(source)
    number = {node: i for i, node in enumerate(graph)}
    edges = [(number[i], number[j], float(weight)) for i, j, weight in graph.edges(data="weight", default=1.0)]
    if not graph.is_directed():
        edges += [(j, i, weight) for i, j, weight in edges if i != j]
    table = torch.tensor(edges, dtype=torch.float64).reshape(-1, 3)
    batch = torch.zeros(len(number), dtype=torch.long)
    try:
        values, places = _encode(kind, table[:, :2].t().long(), k, batch=batch, edge_weight=table[:, 2])
    except ValueError as error:
        raise DataError(f"{source}: {error}") from None
    names = np.array([str(node) for node in number])
    nodes = tuple(names[place.numpy()] for place in places)
    yield EncodedPiece([str(source)], np.array([len(values)]), nodes, values.numpy())


def _encode(
    kind: EncodingKind, edge_index: Tensor, k: int, *, batch: Tensor, edge_weight: Tensor | None = None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The encoding of all nodes, or of all pairs, and the one or two nodes of each of its rows."""
    if kind.level == "node":
        values = encode(kind, edge_index, len(batch), k, batch=batch, edge_weight=edge_weight)
        return values, (torch.arange(len(batch)),)
    pairs = all_pairs(len(batch), batch)
    values = encode_pairs(kind, edge_index, len(batch), k, pairs=pairs, batch=batch, edge_weight=edge_weight)
    return values, tuple(pairs)


class Sink(Protocol):
    """Something encodings are written to, piece after piece."""

    def write(self, piece: EncodedPiece, first: int) -> None:
        """Add a piece whose first row is number `first` of the source."""


class ParquetSink:
    def __init__(self, stack: ExitStack, path: Path, columns: tuple[str, ...]) -> None:
        self.writer, self.columns = stack.enter_context(ParquetWriter(path)), columns

    def write(self, piece: EncodedPiece, first: int) -> None:
        import pyarrow as pa

        unread = [row in piece.reasons for row in range(len(piece.names))]
        rows_of = np.where(unread, 1, piece.counts)
        graph = np.repeat(np.arange(len(piece.names)), rows_of)
        is_node = np.repeat(np.logical_not(unread), rows_of)
        place = np.where(is_node, np.cumsum(is_node) - 1, -1)
        columns = [
            pa.array(graph + first),
            pa.DictionaryArray.from_arrays(pa.array(graph), pa.array(piece.names, pa.string())),
            *(_at(column, place) for column in (*piece.nodes, *piece.encoding.T)),
            pa.array([piece.reasons.get(int(row)) for row in graph], pa.string()),
        ]
        self.writer.write(pa.table(columns, names=self.columns))


def _at(values: NDArray[Any], place: NDArray[np.int64]) -> Any:
    """The values at some places as an Arrow array, null where the place is -1."""
    import pyarrow as pa

    padded = np.append(values, np.zeros(1, values.dtype))
    return pa.array(padded[place], mask=place < 0)


class NpzSink:
    def __init__(self, stack: ExitStack, path: Path, columns: tuple[str, ...]) -> None:
        self.writer = stack.enter_context(NpzWriter(path, compressed=True))
        self.writer.append("offsets", np.zeros(1, dtype=np.int64))

    def write(self, piece: EncodedPiece, first: int) -> None:
        rows_before = self.writer.rows.get("encoding", 0)
        self.writer.append("encoding", piece.encoding)
        self.writer.append("offsets", rows_before + np.cumsum(piece.counts))
        self.writer.append("names", np.array(piece.names, dtype=np.str_))
        for name, nodes in zip(("nodes", "others"), piece.nodes, strict=False):
            self.writer.append(name, nodes)
        reasons = [piece.reasons.get(row, "") for row in range(len(piece.names))]
        self.writer.append("reasons", np.array(reasons, dtype=np.str_))
