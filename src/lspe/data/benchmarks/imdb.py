"""IMDB-BINARY and IMDB-MULTI: ego networks of actors; the genre is to be told. TUDataset's text layout.

Nodes carry their degree, edges the number 1. Ten folds are given (``10fold_idx`` in the archive); of each
training fold a stratified ninth validates. The official archive has no folds: stratified ones are made
then.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lspe.data.benchmarks.download import Source, obtain
from lspe.data.errors import DataError
from lspe.data.graphdata import Description, GraphData
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import Array
from lspe.data.packed.sets import PackedGraphs
from lspe.data.splits import Splits, hold_out, k_folds
from lspe.features import ContinuousFeatures
from lspe.locations import Root

_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
_SOURCES = {  # with the digests GraphDatasets.jl gives, src/TUDatasets.jl
    "IMDB-BINARY": Source(
        "IMDB-BINARY.zip",
        f"{_URL}/IMDB-BINARY.zip",
        "b291ec8b26d85c70faa2ba0a2433e1f407ed2ef5d0fc072d36b9a95e49a1bb27",
    ),
    "IMDB-MULTI": Source(
        "IMDB-MULTI.zip",
        f"{_URL}/IMDB-MULTI.zip",
        "a4a302149ebf4c76fa1f0fb108baff89fcbf9d35de306b18f27a8419b9a1a690",
    ),
}
_GRAPHS = {"IMDB-BINARY": 1000, "IMDB-MULTI": 1500}
_VALIDATION_SEED = 0


def load_binary(root: Root = None) -> GraphData:
    """IMDB-BINARY: 1,000 graphs, action or romance."""
    return _load("IMDB-BINARY", root)


def load_multi(root: Root = None) -> GraphData:
    """IMDB-MULTI: 1,500 graphs, comedy, romance or science fiction."""
    return _load("IMDB-MULTI", root)


def _load(collection: str, root: Root) -> GraphData:
    archive = obtain(_SOURCES[collection], root)
    path = packed_path(collection.lower(), archive)
    return GraphData.open_or_build(path, lambda path: build(path, archive, collection, _GRAPHS[collection]))


def build(path: Path, archive: Path, collection: str, expected: int | None = None) -> None:
    """Convert TUDataset's archive of `collection`, which should hold `expected` graphs."""
    with zipfile.ZipFile(archive) as files:
        names = set(files.namelist())

        def table(name: str) -> Array:
            if name not in names:
                raise DataError(f"{archive} has no {name}; it is not TUDataset's archive of {collection}")
            text = files.read(name).decode().replace(",", " ")
            return np.array(text.split(), dtype=np.int64)

        graphs, y = _graphs(table, collection, archive)
        if expected is not None and len(graphs) != expected:
            raise DataError(f"{archive} holds {len(graphs)} graphs; {collection} has {expected}")
        given = [
            {part: f"{collection}/10fold_idx/{part}_idx-{number}.txt" for part in ("train", "test")}
            for number in range(1, 11)
        ]
        has_folds = given[0]["train"] in names
        if has_folds:
            folds = [_with_validation({part: np.sort(table(name)) for part, name in one.items()}, y) for one in given]
        else:
            folds = [
                _with_validation({"train": np.sort(np.concatenate([one["train"], one["val"]])), "test": one["test"]}, y)
                for one in k_folds(len(y), 10, labels=y)
            ]
    classes = int(y.max()) + 1
    about = Description(
        name=collection.lower(),
        task="multiclass",
        num_outputs=classes,
        task_names=("genre",),
        features=ContinuousFeatures(node_features=1, edge_features=1),
        source=f"{archive}; folds {'given' if has_folds else 'made here: the archive has none'}",
        class_names=tuple(f"genre {number}" for number in range(classes)),
    )
    GraphData.write(path, about, [graphs], folds=folds)


def _graphs(table: Callable[[str], Array], collection: str, archive: Path) -> tuple[PackedGraphs, Array]:
    prefix = f"{collection}/{collection}_"
    source, target = table(f"{prefix}A.txt").reshape(-1, 2).T - 1
    graph_of_node = table(f"{prefix}graph_indicator.txt") - 1
    _, y = np.unique(table(f"{prefix}graph_labels.txt"), return_inverse=True)
    if (np.diff(graph_of_node) < 0).any() or graph_of_node[-1] + 1 != len(y):
        raise DataError(f"{archive}: the nodes are not listed graph by graph, or there are graphs without a label")
    if (graph_of_node[source] != graph_of_node[target]).any():
        raise DataError(f"{archive}: an edge joins nodes of two graphs")

    source, target = np.unique(np.stack([source, target])[:, source != target], axis=1)
    num_nodes = np.bincount(graph_of_node, minlength=len(y))
    order = np.argsort(graph_of_node[source], kind="stable")
    source, target = source[order], target[order]
    graph_of_edge = graph_of_node[source]
    first_node = np.cumsum(num_nodes) - num_nodes
    degree = np.bincount(target, minlength=len(graph_of_node))
    graphs = PackedGraphs.from_arrays(
        num_nodes,
        np.bincount(graph_of_edge, minlength=len(y)),
        np.stack([source, target]) - first_node[graph_of_edge],
        node={"x": degree.astype(np.float32).reshape(-1, 1)},
        edge={"edge_attr": np.ones((len(source), 1), dtype=np.float32)},
        graph={"y": y},
    )
    return graphs, y


def _with_validation(fold: Splits, y: Array) -> Splits:
    train, val = hold_out(fold["train"], y, 9, seed=_VALIDATION_SEED)
    return {"train": train, "val": val, "test": fold["test"]}
