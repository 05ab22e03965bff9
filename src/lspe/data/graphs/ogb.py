"""Archives of the Open Graph Benchmark, graphs with labels of graphs or of nodes, as they are downloaded.

A zip file, or the folder it is unpacked to, with tables without header:

::

    raw/edge.csv.gz             source and target of each edge, nodes numbered from 0 within their graph
    raw/num-node-list.csv.gz    nodes of each graph
    raw/num-edge-list.csv.gz    edges of each graph
    raw/node-feat.csv.gz        a row per node, and
    raw/edge-feat.csv.gz        a row per edge, where there are features
    raw/graph-label.csv.gz      a row per graph, or
    raw/node-label.csv.gz       a row per node; empty where there is no label
    split/NAME/train.csv.gz     numbers of graphs or nodes; and valid, test

Edges are those of undirected graphs, listed once, and are taken in both directions, those of ogbn-arxiv (who cites
whom) too; where a table lists both directions they are left as they are.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from lspe.data.errors import DataError
from lspe.data.graphs.recognition import BINARY, EDGES, TYPED, is_archive
from lspe.data.graphs.stored import StoredGraphs
from lspe.data.packed.container import Array
from lspe.data.packed.pointers import pointers
from lspe.data.packed.targets import UNKNOWN_CLASS
from lspe.data.packed.undirected import both_directions
from lspe.data.splits import Splits
from lspe.data.words import Level
from lspe.locations import cache_root, data_root

_PARTS = {"train": "train", "val": "valid", "test": "test"}
_URL = "https://snap.stanford.edu/ogb/data"
_OTHERS = {
    BINARY: "is one of OGB's binary archives",
    TYPED: "holds nodes and edges of several types",
}
Path_ = str | os.PathLike[str]


class _Files(NamedTuple):
    """The files of an archive by their place below the folder that holds ``raw``, and how one is opened."""

    names: dict[str, str]
    open: Callable[[str], Any]


def find_archive(name: str) -> Path:
    """Where the archive of a set such as ``ogbn-arxiv`` is, as a zip file or a folder in the data root."""
    kind, _, rest = name.partition("-")
    if kind not in ("ogbg", "ogbn") or not rest:
        raise DataError(f"ogb:{name}: OGB's sets of graphs and nodes are called ogbg-NAME and ogbn-NAME")
    short = rest.removeprefix("mol")
    folders = (data_root(), cache_root() / "data")
    for folder in folders:
        for stem in (f"{kind}_{rest}", name, short):
            for path in (folder / stem, folder / f"{stem}.zip"):
                if is_archive(path):
                    return path
    place = "nodeproppred" if kind == "ogbn" else "graphproppred"
    if short != rest:
        place += "/csv_mol_download"
    raise DataError(
        f"ogb:{name} is not in {folders[0]}: put {short}.zip there ({_URL}/{place}/{short}.zip), or name the file or "
        "its folder with --data"
    )


def files_of_archive(path: Path_) -> list[Path]:
    """The files that an archive's content depends on."""
    if not os.path.isdir(path):
        return [Path(path)]
    tables = [*Path(path).glob("raw/*.csv.gz"), *Path(path).glob("split/*/*.csv*")]
    return sorted(tables)


def read_archive(path: Path_) -> StoredGraphs:
    """The graphs of an archive, what their labels belong to, and the parts it divides them into."""
    try:
        if os.path.isdir(path):
            folder = Path(path)
            names = {file.relative_to(folder).as_posix(): str(file) for file in folder.glob("*/**/*") if file.is_file()}
            return _read(_Files(names, lambda name: open(name, "rb")), str(path))
        with zipfile.ZipFile(path) as archive:
            return _read(_Files(_below_raw(archive.namelist()), archive.open), str(path))
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}. Get the archive again.") from None


def _below_raw(names: list[str]) -> dict[str, str]:
    """The files of a zip file by their place in the folder that holds ``raw``, wherever that is."""
    found = [name.removesuffix(file) for name in names for file in (EDGES, *_OTHERS) if name.endswith(file)]
    top = min(found, key=len, default="")
    return {name.removeprefix(top): name for name in names if name.startswith(top)}


def _read(files: _Files, what: str) -> StoredGraphs:
    for name, words in _OTHERS.items():
        if name in files.names:
            raise DataError(f"{what} {words} ({name}), which is not read; sets with {EDGES} are")
    levels: list[Level] = [level for level in ("graph", "node") if f"raw/{level}-label.csv.gz" in files.names]
    if EDGES not in files.names or len(levels) != 1:
        raise DataError(
            f"{what} is not OGB's archive of a set with labels of graphs or of nodes: {EDGES} is missing, or there is "
            "not one of raw/graph-label.csv.gz and raw/node-label.csv.gz"
        )
    [level] = levels

    def table(name: str) -> Array | None:
        place = f"raw/{name}.csv.gz"
        return _table(files, place, what) if place in files.names else None

    edges, num_nodes, num_edges = (
        _whole_numbers(table(name), f"raw/{name}.csv.gz", what) for name in ("edge", "num-node-list", "num-edge-list")
    )
    num_nodes, num_edges = num_nodes[:, 0], num_edges[:, 0]
    counts = {"graph": len(num_nodes), "node": int(num_nodes.sum()), "edge": int(num_edges.sum())}
    x, edge_attr, labels = table("node-feat"), table("edge-feat"), table(f"{level}-label")
    for name, column, of in (
        ("edge", edges, "edge"),
        ("node-feat", x, "node"),
        ("edge-feat", edge_attr, "edge"),
        (f"{level}-label", labels, level),
    ):
        if column is not None and len(column) != counts[of]:
            raise DataError(f"{what}: raw/{name}.csv.gz has {len(column)} rows for {counts[of]} {of}s")
    graphs = _graphs(num_nodes, num_edges, edges, x, edge_attr, _labels(labels, level), level)
    return StoredGraphs(graphs, level, _splits(files, counts[level], what))


def _graphs(
    num_nodes: Array, num_edges: Array, edges: Array, x: Array | None, edge_attr: Array | None, y: Array, level: Level
) -> list[Data]:
    columns = {} if edge_attr is None else {"edge_attr": edge_attr}
    edge_index = np.ascontiguousarray(edges.T)
    if not _lists_both_directions(num_nodes, num_edges, edge_index):
        num_edges, edge_index, doubled = both_directions(num_edges, edge_index, *columns.values())
        columns = dict(zip(columns, doubled, strict=True))
    node_ptr, edge_ptr = pointers(num_nodes), pointers(num_edges)
    tensors = {name: torch.from_numpy(column) for name, column in columns.items()}
    nodes = {} if x is None else {"x": torch.from_numpy(x)}
    index, targets = torch.from_numpy(edge_index), torch.from_numpy(y)
    graphs = []
    for number in range(len(num_nodes)):
        of_nodes = slice(int(node_ptr[number]), int(node_ptr[number + 1]))
        of_edges = slice(int(edge_ptr[number]), int(edge_ptr[number + 1]))
        graphs.append(
            Data(
                **{name: column[of_nodes] for name, column in nodes.items()},
                edge_index=index[:, of_edges],
                **{name: column[of_edges] for name, column in tensors.items()},
                y=targets[of_nodes] if level == "node" else targets[number : number + 1],
                num_nodes=int(num_nodes[number]),
            )
        )
    return graphs


def _lists_both_directions(num_nodes: Array, num_edges: Array, edge_index: Array) -> bool:
    """Whether every edge is there in both directions already."""
    first = np.repeat(pointers(num_nodes)[:-1], num_edges)
    source, target = edge_index + first
    total = int(num_nodes.sum())
    return np.array_equal(np.sort(source * total + target), np.sort(target * total + source)) and len(source) > 0


def _labels(labels: Array | None, level: Level) -> Array:
    """Labels as graphs have them: numbers, NaN where there is none; classes of nodes as whole numbers."""
    assert labels is not None
    known = ~np.isnan(labels) if labels.dtype.kind == "f" else np.ones(labels.shape, dtype=np.bool_)
    is_class = level == "node" and labels.shape[1] == 1 and (labels[known] == np.floor(labels[known])).all()
    if labels.dtype.kind == "f" and is_class and labels[known].max(initial=0) > 1:
        return np.where(known, labels, UNKNOWN_CLASS).astype(np.int64)
    return labels


def _splits(files: _Files, count: int, what: str) -> Splits | None:
    """The parts, where the archive has some."""
    found = {name.split("/")[1] for name in files.names if name.startswith("split/") and name.count("/") == 2}
    if not found:
        return None
    if len(found) > 1:
        raise DataError(f"{what} has several divisions ({', '.join(sorted(found))}): leave one folder below split")
    [kind] = found
    splits: Splits = {}
    for part, theirs in _PARTS.items():
        places = [f"split/{kind}/{theirs}{end}" for end in (".csv.gz", ".csv")]
        place = next((one for one in places if one in files.names), None)
        if place is None:
            raise DataError(f"{what} has no {places[0]}")
        rows = _whole_numbers(_table(files, place, what), place, what)[:, 0]
        if rows.min(initial=0) < 0 or rows.max(initial=0) >= count:
            raise DataError(f"{what}: {place} numbers {int(rows.max())}, but the labels are 0 to {count - 1}")
        splits[part] = rows
    everything = np.concatenate(list(splits.values()))
    if len(np.unique(everything)) != len(everything):
        raise DataError(f"{what}: split/{kind} has a number twice, so parts of it overlap")
    return splits


def _table(files: _Files, place: str, what: str) -> Array:
    """A table without header: whole numbers where all are, otherwise float32."""
    import pandas as pd

    try:
        with files.open(files.names[place]) as file:
            packed = "gzip" if place.endswith(".gz") else None
            values: Array = pd.read_csv(file, compression=packed, header=None, skip_blank_lines=False).to_numpy()
    except pd.errors.EmptyDataError:
        return np.empty((0, 1), dtype=np.int64)
    except ValueError as error:
        raise DataError(f"{what}: {place} is no table of numbers: {error}") from None
    if values.dtype.kind not in "biuf":
        strange = next(one for one in values.reshape(-1) if isinstance(one, str))
        raise DataError(f"{what}: {place} holds {strange!r}, which is no number")
    return values.astype(np.float32 if values.dtype.kind == "f" else np.int64)


def _whole_numbers(values: Array | None, place: str, what: str) -> Array:
    if values is None:
        raise DataError(f"{what} has no {place}")
    if values.dtype.kind != "i":
        raise DataError(f"{what}: {place} does not hold whole numbers")
    return values
