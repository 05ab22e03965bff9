"""Batches of nodes of large graphs, each with a sample of its neighbourhood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lspe.data.errors import DataError
from lspe.data.loader import BatchLoader
from lspe.data.packed.part import part_of
from lspe.data.packed.pointers import Index, pointers, rows_of
from lspe.data.packed.sets import PackedGraphs

if TYPE_CHECKING:
    from torch_geometric.data import Batch


class NeighbourLoader(BatchLoader):
    r"""Iterate over the nodes of `graphs` whose targets are known, `batch_size` of them at a time.

    Of each of these nodes some of the edges into it are drawn, at most ``neighbours[0]``; of the nodes where these
    begin at most ``neighbours[1]``, and so on outwards, one number for each layer of the network. All edges of a node
    are drawn with the same probability and none twice. What was drawn is a graph like any other, in which only the
    targets of the nodes it was drawn for are known: networks, losses and scores need not know of it.

    Order and draws depend on `seed` and the epoch: a run that is resumed sees the same. With another number of
    processes the nodes of a step are the same, and each process draws the neighbourhood of its own part of them.

    A step costs time and memory in proportion to what it draws, however many edges a node has; the whole set is
    only mapped, beside a pointer and a mark per node.
    """

    unit = "nodes"
    reads_ahead = False  # which rows are needed is not known before they are drawn

    def __init__(
        self,
        graphs: PackedGraphs,
        batch_size: int,
        neighbours: Sequence[int],
        *,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        super().__init__(graphs, batch_size, shuffle=shuffle, seed=seed, rank=rank, world_size=world_size)
        if not neighbours or min(neighbours) < 1:
            raise ValueError(f"neighbours are one number of at least 1 for each layer, not {list(neighbours)}")
        if "y" not in graphs.node:
            raise DataError("neighbourhoods are drawn around nodes with targets, and these graphs have none on nodes")
        self.neighbours = tuple(neighbours)
        self.nodes: Index = graphs.rows("node")[graphs.known_targets]
        self.count = len(self.nodes)
        num_nodes = int(graphs.node_ptr[-1])
        first_node = np.repeat(graphs.node_ptr[:-1], np.diff(graphs.edge_ptr))
        self._edge_ptr = pointers(np.bincount(graphs.target + first_node, minlength=num_nodes))
        self._is_found = np.zeros(num_nodes, dtype=np.bool_)

    def numbers(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.nodes[indices]

    def batch(self, indices: NDArray[np.int64], step: int) -> Batch:
        if not len(indices):
            return self.graphs.batch([])
        random = np.random.default_rng([self.seed, self.epoch, step, self.rank, 1])
        targets = self.nodes[indices]
        nodes, edges = self._draw(targets, random)
        known = np.zeros(len(nodes), dtype=np.bool_)
        known[np.searchsorted(nodes, targets)] = True
        return part_of(self.graphs, nodes, edges, known)

    def _draw(self, targets: Index, random: np.random.Generator) -> tuple[Index, Index]:
        """The nodes within reach of what is drawn, and the edges between them, both ascending."""
        newest, nodes, edges = targets, [targets], []
        self._is_found[targets] = True
        for count in self.neighbours:
            drawn = draw_edges(self._edge_ptr, newest, count, random)
            source = self.graphs.source[drawn] + self._first_node_of_edges(drawn)
            newest = np.unique(source[~self._is_found[source]])
            self._is_found[newest] = True
            nodes.append(newest)
            edges.append(drawn)
        everything = np.sort(np.concatenate(nodes))
        self._is_found[everything] = False
        return everything, np.sort(np.concatenate(edges))

    def _first_node_of_edges(self, edges: Index) -> Index:
        """Where the nodes of each edge's graph begin."""
        ptr = self.graphs.edge_ptr
        if len(ptr) == 2:
            return np.zeros_like(edges)
        return self.graphs.node_ptr[np.searchsorted(ptr, edges, side="right") - 1]


def draw_edges(edge_ptr: Index, nodes: Index, count: int, random: np.random.Generator) -> Index:
    """At most `count` of the edges into each node: all where there are no more, otherwise drawn without repetition.

    The edges into node v are ``edge_ptr[v]`` to ``edge_ptr[v + 1]``. They are drawn by Floyd's method: the c-th draw is
    among the first ``degree - count + c + 1``, and the last of these takes the place of one that was drawn before.
    """
    begin = edge_ptr[nodes]
    degree = edge_ptr[nodes + 1] - begin
    is_many = degree > count
    few, _, _ = rows_of(edge_ptr[None], nodes[~is_many])
    begin, degree = begin[is_many], degree[is_many]
    drawn = np.empty((len(begin), count), dtype=np.int64)
    for column in range(count):
        last = degree - count + column
        place = random.integers(0, last, endpoint=True)
        was_drawn = (drawn[:, :column] == place[:, None]).any(axis=1)
        drawn[:, column] = np.where(was_drawn, last, place)
    return np.concatenate([few[0], (begin[:, None] + drawn).reshape(-1)])
