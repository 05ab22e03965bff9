"""CSL: 150 circular skip link graphs of 41 nodes in ten classes that the 1-WL test cannot tell apart."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from lspe.data.benchmarks.download import find
from lspe.data.graphdata import Description, GraphData
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import Array, open_npz
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.undirected import both_directions
from lspe.data.splits import Splits, k_folds
from lspe.features import NoFeatures
from lspe.locations import Root

NODES = 41
SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
COPIES = 15
ARRAYS = "csl.npz"
FOLDS = "csl_5fold.json"


def skip_link_edges(nodes: int, skip: int) -> Array:
    """A ring of `nodes` nodes, each joined to the one `skip` further on too; each edge once, [2, 2 ·
    nodes].
    """
    node = np.arange(nodes)
    return np.stack([np.tile(node, 2), np.concatenate([node + 1, node + skip]) % nodes])


def generate(seed: int = 0) -> tuple[Array, Array]:
    """The edges [150, 2, 82] and classes [150] of randomly renumbered graphs, 15 of each class."""
    generator = np.random.default_rng(seed)
    edges = [generator.permutation(NODES)[skip_link_edges(NODES, skip)] for skip in SKIPS for _ in range(COPIES)]
    return np.stack(edges), np.repeat(np.arange(len(SKIPS)), COPIES)


def build(path: Path, arrays: Path | None, folds: Path | None) -> None:
    """Write the set: graphs and folds from their files where they are there, else our own."""
    if arrays is None:
        edges, y = generate()
    else:
        with open_npz(arrays) as file:
            edges, y = file["edge_index"].transpose(0, 2, 1), file["y"]
    num_edges, edge_index, _ = both_directions(np.full(len(y), edges.shape[2]), edges.transpose(1, 0, 2).reshape(2, -1))
    graphs = PackedGraphs.from_arrays(np.full(len(y), NODES), num_edges, edge_index, graph={"y": y})
    about = Description(
        name="csl",
        task="multiclass",
        num_outputs=len(SKIPS),
        task_names=("class",),
        features=NoFeatures(),
        source=f"{arrays or 'generated'}; folds {folds or 'generated'}",
        class_names=tuple(f"skip {skip}" for skip in SKIPS),
    )
    GraphData.write(path, about, [graphs], folds=_read_folds(folds) if folds else k_folds(len(y), 5, labels=y))


def _read_folds(path: Path) -> list[Splits]:
    parts = json.loads(path.read_text())
    return [
        {name: np.sort(np.asarray(indices)) for name, indices in zip(parts, fold, strict=True)}
        for fold in zip(*parts.values(), strict=True)
    ]


def load(root: Root = None) -> GraphData:
    """CSL, from the files in the data root where they are there."""
    arrays, folds = find(ARRAYS, root), find(FOLDS, root)
    path = packed_path("csl", *(one for one in (arrays, folds) if one))
    return GraphData.open_or_build(path, lambda path: build(path, arrays, folds))
