r"""CIFAR10 as graphs of superpixels: 60,000 images, 10 classes, colour and place of each superpixel on its
node.

From the superpixels alone the edges are computed: each node points to its 8 nearest by place, with the weight

.. math::
    w_{ij} = \tfrac12 \left( e^{-(d_{ij} / \sigma_i)^2} + e^{-(d_{ij} / \sigma_j)^2} \right)

where :math:`\sigma_i` is the mean distance of node i to those 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lspe.data.benchmarks.download import Source, find, obtain
from lspe.data.benchmarks.pyg_archive import Sizes, read_archive
from lspe.data.errors import DataError
from lspe.data.graphdata import Description, GraphData
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import Array, open_npz
from lspe.data.packed.pointers import pointers
from lspe.data.packed.sets import PackedGraphs
from lspe.data.splits import by_code, in_order
from lspe.features import ContinuousFeatures
from lspe.locations import Root

NEIGHBOURS = 8
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SUPERPIXELS = "cifar10_superpixels.npz"
_OFFICIAL = Source(  # nobody has published a digest of it
    "CIFAR10_v2.zip", "https://data.pyg.org/datasets/benchmarking-gnns/CIFAR10_v2.zip", None
)
_SIZES = (45_000, 5_000, 10_000)
_BLOCK = 100


def load(root: Root = None) -> GraphData:
    """CIFAR10 superpixels."""
    superpixels = find(_SUPERPIXELS, root)
    if superpixels is not None:
        path = packed_path("cifar10", superpixels)
        return GraphData.open_or_build(path, lambda path: from_superpixels(path, superpixels))
    archive = obtain(_OFFICIAL, root)
    path = packed_path("cifar10", archive)
    return GraphData.open_or_build(path, lambda path: from_archive(path, archive, _SIZES))


def _about(source: Path) -> Description:
    return Description(
        name="cifar10",
        task="multiclass",
        num_outputs=len(CLASSES),
        task_names=("class",),
        features=ContinuousFeatures(node_features=5, edge_features=1),
        source=str(source),
        class_names=CLASSES,
    )


def from_superpixels(path: Path, source: Path) -> None:
    """Join superpixels (mean colour in 1/255, centre in 1/8 pixel of 32) to graphs."""
    with open_npz(source) as file:
        num_nodes, rgb, place, y = (file[name] for name in ("num_nodes", "rgb", "pos", "y"))
        splits = by_code(file["split"])
    ptr = pointers(num_nodes)

    def blocks() -> Iterator[PackedGraphs]:
        for begin in range(0, len(y), _BLOCK):
            graphs = slice(begin, begin + _BLOCK)
            nodes = slice(int(ptr[begin]), int(ptr[min(begin + _BLOCK, len(y))]))
            edge_index, weight = nearest_by_place(num_nodes[graphs], place[nodes])
            yield PackedGraphs.from_arrays(
                num_nodes[graphs],
                num_nodes[graphs].astype(np.int64) * NEIGHBOURS,
                edge_index,
                node={"x": np.hstack([rgb[nodes] / np.float32(255), place[nodes] / np.float32(256)])},
                edge={"edge_attr": weight.astype(np.float32).reshape(-1, 1)},
                graph={"y": y[graphs]},
            )

    GraphData.write(path, _about(source), blocks(), splits=splits, index_dtype=np.uint8)


def nearest_by_place(num_nodes: Array, place: Array) -> tuple[Array, Array]:
    """Edges from each node to its nearest and their weights; `place` [N, 2] are integers below 256.

    All graphs at once, padded to the largest. Squared distances are whole numbers, so that together with
    the neighbour's number they make one integer to sort by: equally distant neighbours come in the order of
    their numbers.
    """
    width = int(num_nodes.max())
    if int(num_nodes.min()) <= NEIGHBOURS or width > 256:
        raise DataError(f"superpixel graphs need {NEIGHBOURS + 1} to 256 nodes, not {num_nodes.min()} … {width}")
    real = np.arange(width) < num_nodes[:, None]
    padded = np.zeros((2, len(num_nodes), width), dtype=np.int32)
    padded[:, real] = place.T
    difference = padded[:, :, :, None] - padded[:, :, None, :]
    difference *= difference
    key = difference[0]
    key += difference[1]
    key <<= 8
    key += np.arange(width, dtype=np.int32)
    key[np.broadcast_to(~real[:, None, :], key.shape)] = np.iinfo(np.int32).max
    key[:, np.arange(width), np.arange(width)] = np.iinfo(np.int32).max
    nearest = np.sort(np.partition(key, NEIGHBOURS - 1, axis=2)[:, :, :NEIGHBOURS], axis=2)

    neighbour, distance = nearest & 255, np.sqrt(nearest >> 8)
    sigma = distance.mean(axis=2) + 1e-8
    sigma_of_neighbour = np.take_along_axis(sigma, neighbour.reshape(len(sigma), -1), axis=1).reshape(neighbour.shape)
    with np.errstate(over="ignore"):
        weight = (np.exp(-((distance / sigma[:, :, None]) ** 2)) + np.exp(-((distance / sigma_of_neighbour) ** 2))) / 2
    source = np.broadcast_to(np.arange(width)[:, None], neighbour.shape[1:])[None].repeat(len(sigma), axis=0)
    return np.stack([source[real].reshape(-1), neighbour[real].reshape(-1)]), weight[real].reshape(-1)


def from_archive(path: Path, archive: Path, expected: Sizes | None = None) -> None:
    """Convert PyG's archive of the benchmark."""
    everything, sizes = read_archive(archive, "CIFAR10", expected)
    blocks = (_packed(everything[begin : begin + _BLOCK]) for begin in range(0, len(everything), _BLOCK))
    GraphData.write(path, _about(archive), blocks, splits=in_order(sizes), index_dtype=np.uint8)


def _packed(graphs: Iterable[dict[str, Any]]) -> PackedGraphs:
    graphs = list(graphs)

    def column(name: str, width: int) -> Array:
        return np.concatenate([graph[name].reshape(-1, width).numpy() for graph in graphs])

    return PackedGraphs.from_arrays(
        [len(graph["pos"]) for graph in graphs],
        [graph["edge_index"].shape[1] for graph in graphs],
        np.concatenate([graph["edge_index"].numpy() for graph in graphs], axis=1),
        node={"x": np.hstack([column("x", 3), column("pos", 2)]).astype(np.float32)},
        edge={"edge_attr": column("edge_attr", 1).astype(np.float32)},
        graph={"y": column("y", 1)[:, 0].astype(np.int64)},
    )
