"""Files of graphs to learn from: ``.npz``, ``.parquet`` and ``.json``. Nothing in them is pickled.

A graph is a set of arrays under PyG's names: ``edge_index`` [2, E] (node numbers from 0, both directions of an
undirected edge), ``num_nodes`` where no ``x`` says it, ``x``, ``edge_attr``, ``y``, ``train_mask`` and so on.

- ``.json``: ``{"format": "lspe-graphs", "version": 1, "level": "node", "graphs": [{"edge_index": …, "y": …}, …]}``.
  A bare list of graphs or a single graph will do; ``null`` is a target that is not known.
- ``.parquet``: a row per graph, a column per name, arrays as lists; the level is in the metadata.
- ``.npz``: the arrays of all graphs one after the other: ``num_nodes`` [G], ``num_edges`` [G], ``edge_index`` [2, E]
  (numbers within each graph), and ``node/NAME`` [N, …], ``edge/NAME`` [E, …], ``graph/NAME`` [G, …]; ``node/y`` is the
  target of nodes. The quickest of the three, and the smallest.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch_geometric.data import Data

from lspe.data.errors import DataError
from lspe.data.graphs.ogb import files_of_archive, read_archive
from lspe.data.graphs.pyg import attributes_of, levels_of, read_folder
from lspe.data.graphs.recognition import is_archive
from lspe.data.graphs.stored import StoredGraphs
from lspe.data.graphs.targets import find_level
from lspe.data.packed.container import Array, open_npz
from lspe.data.packed.pointers import pointers
from lspe.data.splits import NAMES
from lspe.data.words import Level
from lspe.files import check_folder_of, complete_or_nothing

FORMAT, VERSION = "lspe-graphs", 1
_KINDS = (".npz", ".parquet", ".json")
_METADATA = b"lspe"


def save_graphs(path: str | os.PathLike[str], graphs: Data | Sequence[Data], *, level: Level | None = None) -> None:
    """Write graphs to a file that ``lspe train --data`` reads: ``.npz``, ``.parquet`` or ``.json``.

    Every tensor of the graphs is kept. `level` says what ``y`` belongs to, where its shape could be taken for both;
    ``link`` that the edges themselves are to be learned, which a ``.npz`` file does not keep.

    >>> lspe.data.save_graphs("graphs.npz", [Data(x=x, edge_index=edge_index, y=y), ...])
    """
    target = Path(path)
    if target.suffix.lower() not in _KINDS:
        raise DataError(f"{path}: graphs are written to a name that ends in {', '.join(_KINDS)}")
    check_folder_of(target)
    everything = [graphs] if isinstance(graphs, Data) else list(graphs)
    names = attributes_of(everything)
    if "y" in names and level != "link":
        level = find_level(everything, level)
    write: dict[str, Callable[[Path, list[Data], list[str], Level | None], None]] = {
        ".npz": _write_npz,
        ".parquet": _write_parquet,
        ".json": _write_json,
    }
    with complete_or_nothing(target) as temporary:
        write[target.suffix.lower()](temporary, everything, names, level)


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """The files of graphs at a path: itself, or those in a folder in the order of their names."""
    name = Path(path)
    if not os.path.exists(name):
        raise DataError(f"{path}: there is no such file or folder")
    if is_archive(name):
        return files_of_archive(name)
    if not name.is_dir():
        return [name]
    files = sorted(one for one in name.iterdir() if one.suffix.lower() in (*_KINDS, ".pt"))
    if not files:
        raise DataError(f"{path} holds no files of graphs ({', '.join(_KINDS)} or .pt)")
    return files


def read_graphs(path: str | os.PathLike[str]) -> StoredGraphs:
    """The graphs of a file, of all files in a folder, or of an archive of OGB.

    Files of a folder that are called ``train``, ``val`` and ``test`` are its parts.
    """
    files = files_of(path)
    if is_archive(path):
        return read_archive(path)
    if any(file.suffix.lower() == ".pt" for file in files):
        return StoredGraphs(read_folder(path), None)
    each = [_read(file) for file in files]
    levels = {one.level for one in each if one.level is not None}
    if len(levels) > 1:
        raise DataError(f"{path} holds targets of {' and of '.join(sorted(levels))}s: put them into different folders")
    graphs = [graph for one in each for graph in one.graphs]
    splits = None
    if sorted(file.stem for file in files) == sorted(NAMES):
        ptr = pointers([len(one.graphs) for one in each])
        splits = {file.stem: np.arange(ptr[i], ptr[i + 1]) for i, file in enumerate(files)}
    return StoredGraphs(graphs, levels.pop() if levels else None, splits)


def _read(path: Path) -> StoredGraphs:
    read = {".npz": _read_npz, ".parquet": _read_parquet, ".json": _read_json}.get(path.suffix.lower())
    if read is None:
        raise DataError(f"{path}: graphs are read from files that end in {', '.join(_KINDS)}")
    try:
        return read(path)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except (ValueError, OSError, KeyError, zipfile.BadZipFile, EOFError, RecursionError) as error:
        raise DataError(f"{path} is damaged or not a file of graphs: {error}") from None


def _write_npz(path: Path, graphs: list[Data], names: list[str], level: Level | None) -> None:
    columns: dict[str, Any] = {
        "num_nodes": np.array([graph.num_nodes for graph in graphs]),
        "num_edges": np.array([graph.num_edges for graph in graphs]),
        "edge_index": torch.cat([graph.edge_index.reshape(2, -1) for graph in graphs], dim=1).numpy(),
    }
    for name, of in levels_of(graphs, names, level).items():
        parts = [graph[name].reshape(1, -1) if of == "graph" else graph[name] for graph in graphs]
        columns[f"{of}/{name}"] = torch.cat(parts).numpy()
    with path.open("wb") as file:
        np.savez_compressed(file, **columns)


def _read_npz(path: Path) -> StoredGraphs:
    with open_npz(path) as file:
        columns = {name: file[name] for name in file}
    missing = [name for name in ("num_nodes", "num_edges", "edge_index") if name not in columns]
    if missing:
        raise DataError(f"there is no array {missing[0]!r}; there are {', '.join(columns) or 'none'}")
    num_nodes, num_edges = columns.pop("num_nodes").reshape(-1), columns.pop("num_edges").reshape(-1)
    edge_index = columns.pop("edge_index")
    count = len(num_nodes)
    rows = {"node": pointers(num_nodes), "edge": pointers(num_edges), "graph": np.arange(count + 1)}
    if (
        edge_index.ndim != 2
        or len(edge_index) != 2
        or edge_index.shape[1] != rows["edge"][-1]
        or len(num_edges) != count
    ):
        raise DataError(
            f"edge_index has shape {list(edge_index.shape)} and num_edges [{len(num_edges)}] adds up to "
            f"{rows['edge'][-1]} for {count} graphs: they do not belong together"
        )
    graphs = [
        Data(
            edge_index=torch.from_numpy(edge_index[:, rows["edge"][i] : rows["edge"][i + 1]].astype(np.int64)),
            num_nodes=int(num_nodes[i]),
        )
        for i in range(count)
    ]
    for key, column in columns.items():
        level, _, name = key.partition("/")
        if level not in rows or not name:
            raise DataError(
                f"the array {key!r} says not what it belongs to: call it node/{key}, edge/{key} or graph/{key}"
            )
        if len(column) != rows[level][-1]:
            raise DataError(f"{key} has {len(column)} rows for {rows[level][-1]} {level}s")
        values = torch.from_numpy(column)
        for i, graph in enumerate(graphs):
            graph[name] = values[rows[level][i] : rows[level][i + 1]]
    levels = [level for level in get_args(Level) if f"{level}/y" in columns]
    if len(levels) > 1:
        raise DataError(f"there are targets of {' and of '.join(f'{level}s' for level in levels)}: leave one")
    return StoredGraphs(graphs, levels[0] if levels else None)


def _write_json(path: Path, graphs: list[Data], names: list[str], level: Level | None) -> None:
    rows = [_plain(graph, names) for graph in graphs]
    content = {"format": FORMAT, "version": VERSION, "level": level, "graphs": rows}
    path.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")


def _plain(graph: Data, names: Sequence[str]) -> dict[str, Any]:
    """A graph as numbers and lists; ``None`` where a number is NaN."""
    values = {name: graph[name] for name in ("edge_index", *names)}
    return {
        "num_nodes": int(graph.num_nodes),
        **{
            name: _without_nan(value.tolist()) if value.isnan().any() else value.tolist()
            for name, value in values.items()
        },
    }


def _without_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if value != value else value


def _read_json(path: Path) -> StoredGraphs:
    content = json.loads(path.read_text(encoding="utf-8"))
    level = None
    if isinstance(content, dict) and "graphs" in content:
        if content.get("version", VERSION) != VERSION:
            raise DataError(f"the file has version {content['version']}; this lspe reads version {VERSION}")
        level, content = content.get("level"), content["graphs"]
    rows = content if isinstance(content, list) else [content]
    return StoredGraphs(_from_rows(rows), _checked_level(level))


def _checked_level(level: Any) -> Level | None:
    if level is not None and level not in get_args(Level):
        raise DataError(f"the level is {level!r}; it is one of {', '.join(get_args(Level))}")
    return level


def _write_parquet(path: Path, graphs: list[Data], names: list[str], level: Level | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [_plain(graph, names) for graph in graphs]
    columns = {}
    for name in rows[0]:
        kind: Any = pa.int64()
        if name != "num_nodes":
            example = graphs[0][name]
            kind = pa.from_numpy_dtype(example.numpy().dtype)
            for _ in range(example.dim()):
                kind = pa.list_(kind)
        columns[name] = pa.array([row[name] for row in rows], kind)
    about = {_METADATA: json.dumps({"format": FORMAT, "version": VERSION, "level": level}).encode()}
    pq.write_table(pa.table(columns).replace_schema_metadata(about), path)


def _read_parquet(path: Path) -> StoredGraphs:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    about = json.loads((table.schema.metadata or {}).get(_METADATA, b"{}"))
    return StoredGraphs(_from_rows(table.to_pylist()), _checked_level(about.get("level")))


def _from_rows(rows: Sequence[Any]) -> list[Data]:
    """Graphs from objects of lists."""
    if not rows:
        raise DataError("there are no graphs in it")
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping) or "edge_index" not in row:
            raise DataError(f"graph {number} has no edge_index: a graph is an object with edge_index [2, E] and more")
    names = [name for name in rows[0] if name != "num_nodes"]
    columns = {name: _arrays(name, rows) for name in names}
    graphs = []
    for number, row in enumerate(rows):
        values: dict[str, Any] = {name: torch.from_numpy(column[number]) for name, column in columns.items()}
        values["edge_index"] = values["edge_index"].reshape(2, -1).long()
        if row.get("num_nodes") is not None:
            values["num_nodes"] = int(row["num_nodes"])
        graphs.append(Data(**values))
    return graphs


def _arrays(name: str, rows: Sequence[Mapping[str, Any]]) -> list[Array]:
    """One attribute of all graphs; whole numbers where all are, and as wide where a graph has no rows."""
    arrays = []
    for number, row in enumerate(rows):
        if row.get(name) is None:
            raise DataError(f"graph {number} has no {name}, which graph 0 has")
        try:
            array = np.array(row[name])
            array = array.astype(np.float64) if array.dtype.kind == "O" else array
        except (ValueError, TypeError):
            raise DataError(f"graph {number}: {name} is no array of numbers with rows of equal length") from None
        if array.dtype.kind not in "biuf":
            raise DataError(f"graph {number}: {name} holds {array.reshape(-1)[0]!r}, which is no number")
        arrays.append(array)
    filled = [array for array in arrays if array.size] or arrays
    kind = np.result_type(*filled)
    shape = filled[0].shape[1:]
    return [
        (array if array.size else array.reshape(0, *shape)).astype(np.float32 if kind.kind == "f" else kind)
        for array in arrays
    ]
