"""PubMed and CiteSeer: one graph of papers that cite each other; the field of each is to be told from a few labels.

The public split: 20 papers of each class teach, 500 validate, 1,000 test. The vector of a paper's words, weighted or
counted, is scaled to length 1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lspe.data.benchmarks.download import find
from lspe.data.errors import DataError
from lspe.data.graphdata import Description, GraphData
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import Array, open_npz
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.undirected import both_directions
from lspe.data.splits import NAMES
from lspe.features import ContinuousFeatures
from lspe.locations import Root, data_root

CLASSES = {
    "pubmed": tuple(f"field {number}" for number in range(3)),
    "citeseer": tuple(f"field {number}" for number in range(6)),
}


def load_pubmed(root: Root = None) -> GraphData:
    """PubMed: 19,717 papers on diabetes in 3 classes."""
    return _load("pubmed", root)


def load_citeseer(root: Root = None) -> GraphData:
    """CiteSeer: 3,327 papers on computing in 6 classes."""
    return _load("citeseer", root)


def _load(name: str, root: Root) -> GraphData:
    file = f"planetoid_{name}.npz"
    arrays = find(file, root)
    if arrays is None:
        raise DataError(f"{file} is not in {data_root(root)}: put it there, or name its folder with --root")
    return GraphData.open_or_build(packed_path(name, arrays), lambda path: build(path, arrays, name))


def build(path: Path, arrays: Path, name: str) -> None:
    """Convert the arrays: edges [E, 2] once each, words as a sparse matrix by rows, classes (-1: none), three parts."""
    with open_npz(arrays) as file:
        edges, y = file["edges"], file["y"].astype(np.int64)
        x = _dense(file["x_indptr"], file["x_indices"], file["x_data"], tuple(file["x_shape"]))
        splits = {part: file[part].astype(np.int64) for part in NAMES}
    num_edges, edge_index, _ = both_directions([len(edges)], edges.T)
    graph = PackedGraphs.from_arrays(
        [len(y)],
        num_edges,
        edge_index,
        node={"x": x, "y": y},
        edge={"edge_attr": np.ones((int(num_edges[0]), 1), dtype=np.float32)},
    )
    about = Description(
        name=name,
        level="node",
        divided="targets",
        task="multiclass",
        num_outputs=len(CLASSES[name]),
        task_names=("field",),
        features=ContinuousFeatures(node_features=x.shape[1], edge_features=1),
        source=str(arrays),
        class_names=CLASSES[name],
    )
    GraphData.write(path, about, [graph], splits=splits)


def _dense(indptr: Array, indices: Array, data: Array, shape: tuple[int, int]) -> Array:
    """A sparse matrix in full, each row scaled to length 1; a row of zeros stays."""
    row = np.repeat(np.arange(shape[0]), np.diff(indptr))
    x = np.zeros(shape, dtype=np.float32)
    x[row, indices] = data
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.where(length > 0, length, 1))
