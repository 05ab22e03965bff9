"""PATTERN and CLUSTER: graphs of random communities (stochastic block models), a class per node.

CLUSTER: six communities; in each, one node carries its community's number, and the communities of all others are to be
found. PATTERN: five communities and, among them, one of a hundred fixed patterns, whose nodes are to be found.

Both are generated as they were published. Where PyG's archive of the published graphs lies in the data root
(``CLUSTER_v2.zip``, ``PATTERN_v2.zip``), that is read instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from lspe.data.benchmarks.download import find
from lspe.data.benchmarks.pyg_archive import Sizes, read_archive
from lspe.data.graphdata import Description, GraphData
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import Array
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.writer import concatenate
from lspe.data.splits import in_order
from lspe.features import CategoricalFeatures
from lspe.locations import Root

SMALLEST, LARGEST = 5, 34
"""Nodes of a community."""
PATTERN_NODES, PATTERNS = 20, 100
_SEED = 0
_BLOCK = 100

Graph = tuple[Array, Array, Array]
"""Types [N] and classes [N] of the nodes, and edges [2, E] in both directions."""


@dataclass(frozen=True)
class BlockModel:
    """What is known of one of the two sets."""

    name: str
    sizes: Sizes
    node_types: int
    class_names: tuple[str, ...]
    generate: Callable[[int], Iterator[Graph]]


def generate_cluster(seed: int = _SEED) -> Iterator[Graph]:
    """Graphs of CLUSTER without end."""
    generator = np.random.default_rng([seed, 0])
    while True:
        community = np.repeat(np.arange(6), generator.integers(SMALLEST, LARGEST + 1, 6))
        generator.shuffle(community)
        types = np.zeros(len(community), dtype=np.int64)
        for number in range(6):
            types[generator.choice(np.flatnonzero(community == number))] = number + 1
        together = community[:, None] == community[None, :]
        yield types, community, _edges(generator, np.where(together, 0.55, 0.25))


def generate_pattern(seed: int = _SEED) -> Iterator[Graph]:
    """Graphs of PATTERN without end."""
    generator = np.random.default_rng([seed, 1])
    patterns = [
        (generator.integers(0, 3, PATTERN_NODES), _edges(generator, np.full((PATTERN_NODES, PATTERN_NODES), 0.5)))
        for _ in range(PATTERNS)
    ]
    while True:
        community = np.repeat(np.arange(5), generator.integers(SMALLEST, LARGEST + 1, 5))
        types, pattern = patterns[generator.integers(PATTERNS)]
        others = len(community)
        count = others + PATTERN_NODES
        probability = np.full((count, count), 0.5)
        probability[:others, :others] = np.where(community[:, None] == community[None, :], 0.5, 0.35)
        probability[others:, others:] = 0
        edges = np.concatenate([_edges(generator, probability), pattern + others], axis=1)
        place = generator.permutation(count)  # where each node goes
        all_types, classes = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        all_types[place] = np.concatenate([generator.integers(0, 3, others), types])
        classes[place] = np.arange(count) >= others
        yield all_types, classes, place[edges]


def _edges(generator: Generator, probability: Array) -> Array:
    """Undirected edges without loops, each drawn on its own; both directions, [2, E]."""
    drawn = np.triu(generator.random(probability.shape) < probability, k=1)
    source, target = np.nonzero(drawn)
    return np.stack([np.concatenate([source, target]), np.concatenate([target, source])])


CLUSTER = BlockModel(
    "cluster", (10_000, 1_000, 1_000), 7, tuple(f"community {number}" for number in range(1, 7)), generate_cluster
)
PATTERN = BlockModel("pattern", (10_000, 2_000, 2_000), 3, ("background", "pattern"), generate_pattern)


def load_cluster(root: Root = None) -> GraphData:
    """CLUSTER: 12,000 graphs, six communities."""
    return _load(CLUSTER, root)


def load_pattern(root: Root = None) -> GraphData:
    """PATTERN: 14,000 graphs, pattern or not."""
    return _load(PATTERN, root)


def _load(model: BlockModel, root: Root) -> GraphData:
    archive = find(archive_of(model), root)
    path = packed_path(model.name, archive if archive is not None else f"generated from {_SEED}")
    return GraphData.open_or_build(path, lambda path: build(path, model, archive))


def archive_of(model: BlockModel) -> str:
    """The name of PyG's archive of a set."""
    return f"{model.name.upper()}_v2.zip"


def build(path: Path, model: BlockModel, archive: Path | None = None, sizes: Sizes | None = None) -> None:
    """Write a set from PyG's archive, or generated, with so many training, validation and test graphs."""
    sizes = sizes or model.sizes
    if archive is None:
        drawn = model.generate(_SEED)
        graphs: Iterator[Graph] = (next(drawn) for _ in range(sum(sizes)))
    else:
        published, _ = read_archive(archive, model.name.upper(), sizes)
        graphs = map(_of_archive, published)
    about = Description(
        name=model.name,
        level="node",
        task="multiclass",
        num_outputs=len(model.class_names),
        task_names=("class",),
        features=CategoricalFeatures(node_types=model.node_types, edge_types=2),
        source="generated" if archive is None else str(archive),
        class_names=model.class_names,
    )
    GraphData.write(path, about, _blocks(graphs), splits=in_order(sizes), index_dtype=np.uint8)


def _of_archive(graph: dict[str, Any]) -> Graph:
    """PyG writes a node's type as a vector with a single 1."""
    x = graph["x"].numpy()
    types = x.argmax(axis=1) if x.ndim == 2 and x.shape[1] > 1 else x.reshape(-1)
    return types.astype(np.int64), graph["y"].numpy().reshape(-1).astype(np.int64), graph["edge_index"].numpy()


def _blocks(graphs: Iterator[Graph]) -> Iterator[PackedGraphs]:
    block: list[PackedGraphs] = []
    for graph in graphs:
        block.append(_packed(*graph))
        if len(block) == _BLOCK:
            yield concatenate(block)
            block = []
    if block:
        yield concatenate(block)


def _packed(types: Array, classes: Array, edges: Array) -> PackedGraphs:
    return PackedGraphs.from_arrays(
        [len(types)],
        [edges.shape[1]],
        edges,
        node={"x": types.astype(np.uint8), "y": classes.astype(np.int8)},
        edge={"edge_attr": np.ones(edges.shape[1], dtype=np.uint8)},
    )
