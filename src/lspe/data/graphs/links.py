"""Graphs of a person's own whose edges themselves are to be learned: a part of these is hidden, and asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch_geometric.data import Data

from lspe.data.errors import DataError
from lspe.data.graphdata import GraphData
from lspe.data.graphs.pyg import attributes_of, levels_of, pack
from lspe.data.graphs.targets import MASKS, splits_of_masks
from lspe.data.packed.container import Array
from lspe.data.packed.links import LinkGraphs
from lspe.data.packed.pointers import Index
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.unjoined import draw_unjoined, pair_codes
from lspe.data.splits import NAMES, Fractions, Splits, random_split

QUESTIONS = ("edge_label", "edge_label_index")
"""What PyG calls pairs that are asked for, and whether they are joined: no features of a graph."""
_FEWEST = 10
_DRAWS = 2
"""Tells the numbers that unjoined pairs are drawn from from those that divide the edges."""


def link_data(graphs: Sequence[Data], *, fractions: Fractions, seed: int, name: str) -> GraphData:
    """Graphs of which a network sees the training edges, and is asked for those of validation and test.

    Edges are hidden in both directions: as ``train_mask``, ``val_mask`` and ``test_mask`` [E] say, else at random. To
    the hidden ones of each part as many pairs are added that are not joined at all, once and for all; those for
    training are drawn in each epoch (:class:`~lspe.data.packed.links.LinkGraphs`).
    """
    graphs = [without_questions(graph) for graph in graphs]
    names = attributes_of(graphs)
    edges = UndirectedEdges(graphs)
    splits = _divide(graphs, edges, fractions, seed)
    is_seen = np.zeros(edges.count, dtype=np.bool_)
    is_seen[splits["train"]] = True
    of_edges = [key for key, level in levels_of(graphs, names, "link").items() if level == "edge"]
    seen = [_with_edges(graph, is_seen[edge], of_edges) for graph, edge in zip(graphs, edges.of_listed, strict=True)]
    packed, features = pack(seen)
    links, rows = _questions(packed, edges, splits, seed)
    return GraphData(
        name=name,
        level="link",
        divided="targets",
        task="binary",
        num_outputs=1,
        task_names=("joined",),
        features=features,
        source="PyG Data",
        graphs=links,
        splits=rows,
    )


def without_questions(graph: Data) -> Data:
    """The same graph without the pairs that are asked for."""
    if not any(key in graph for key in QUESTIONS):
        return graph
    return Data(**{key: value for key, value in graph.to_dict().items() if key not in QUESTIONS})


def with_asked_pairs(packed: PackedGraphs, graphs: Sequence[Data]) -> LinkGraphs:
    """A packed set with the pairs ``edge_label_index`` [2, P] that each of its graphs asks for."""
    every = []
    for number, graph in enumerate(graphs):
        if "edge_label_index" not in graph:
            raise DataError(
                f"graph {number} does not say which pairs of nodes to predict: give it edge_label_index [2, P], as PyG "
                "does"
            )
        pairs = np.asarray(graph.edge_label_index, dtype=np.int64)
        if pairs.ndim != 2 or len(pairs) != 2:
            raise DataError(f"graph {number}: edge_label_index has shape {list(pairs.shape)}; pairs are [2, P]")
        check_pairs(pairs, int(graph.num_nodes), partial("graph {}, pair {}".format, number))
        every.append(pairs)
    return LinkGraphs.of(packed, [pairs.shape[1] for pairs in every], np.concatenate(every, axis=1))


def check_pairs(pairs: Index, nodes: int, place_of: Callable[[int], str]) -> None:
    """Refuse pairs [2, P] of nodes a graph does not have, or of a node and itself; `place_of` says where one is."""
    wrong = ((pairs < 0) | (pairs >= nodes)).any(axis=0)
    if wrong.any():
        first = int(wrong.argmax())
        raise DataError(
            f"{place_of(first)}: {pairs[0, first]} – {pairs[1, first]}, but the graph has {nodes} nodes, "
            "numbered from 0"
        )
    same = pairs[0] == pairs[1]
    if same.any():
        first = int(same.argmax())
        raise DataError(f"{place_of(first)}: node {pairs[0, first]} and itself; a link is between two nodes")


class UndirectedEdges:
    """The undirected edges of graphs, each once: ``graph`` [U], ``ends`` [2, U], the smaller number first.

    ``of_listed`` says for each graph which of them each of its listed edges is, [E]. What is not undirected is refused.
    """

    def __init__(self, graphs: Sequence[Data]) -> None:
        all_ends, all_graphs, self.of_listed = [], [], []
        count = 0
        for number, graph in enumerate(graphs):
            ends, place = _undirected(graph, number)
            all_ends.append(ends)
            all_graphs.append(np.full(ends.shape[1], number))
            self.of_listed.append(place + count)
            count += ends.shape[1]
        self.ends: Index = np.concatenate(all_ends, axis=1)
        self.graph: Index = np.concatenate(all_graphs)
        self.count = count

    def of_first_direction(self, column: Array) -> Array:
        """A column of all listed edges as one of undirected edges; refused where two directions differ."""
        place = np.concatenate(self.of_listed)
        value = np.empty((self.count, *column.shape[1:]), dtype=column.dtype)
        value[place] = column
        differs = (value[place] != column).reshape(len(place), -1).any(axis=1)
        if differs.any():
            edge = place[int(differs.argmax())]
            low, high = self.ends[:, edge]
            raise DataError(
                f"graph {self.graph[edge]}: the two directions of edge {low} – {high} are in different parts: the "
                "answer would be seen in training. Put both into the same mask."
            )
        return value


def _undirected(graph: Data, number: int) -> tuple[Index, Index]:
    """The undirected edges of a graph, [2, U], and which of them each listed edge is, [E]."""
    ends = graph.edge_index.reshape(2, -1).numpy().astype(np.int64)
    nodes = int(graph.num_nodes)
    if ends.size and (ends.min() < 0 or ends.max() >= nodes):
        first = int(((ends < 0) | (ends >= nodes)).any(axis=0).argmax())
        raise DataError(
            f"graph {number} has an edge {ends[0, first]} → {ends[1, first]} but only {nodes} nodes; nodes are "
            "numbered from 0 within each graph"
        )
    loops = np.flatnonzero(ends[0] == ends[1])
    if len(loops):
        raise DataError(
            f"graph {number}: node {ends[0, loops[0]]} is joined to itself; links are between two nodes. "
            "Take self-loops out: torch_geometric.utils.remove_self_loops"
        )
    low, high = np.sort(ends, axis=0)
    codes, where, which = np.unique(low * nodes + high, return_index=True, return_inverse=True)
    place = which.reshape(-1)
    forward = np.bincount(place[ends[0] < ends[1]], minlength=len(codes))
    backward = np.bincount(place[ends[0] > ends[1]], minlength=len(codes))
    for odd, what in (
        ((forward > 1) | (backward > 1), "is listed twice: one of them would be seen when the other is asked for. "
         "Leave one, torch_geometric.utils.coalesce"),
        (forward != backward, "goes one way only: links are undirected. List both directions, "
         "torch_geometric.utils.to_undirected"),
    ):  # fmt: skip
        if odd.any():
            edge = where[int(odd.argmax())]
            raise DataError(f"graph {number}: the edge {ends[0, edge]} → {ends[1, edge]} {what}")
    return np.stack([low[where], high[where]]), place


def _divide(graphs: Sequence[Data], edges: UndirectedEdges, fractions: Fractions, seed: int) -> Splits:
    """Which undirected edges teach, validate and test."""
    if edges.count < _FEWEST:
        raise DataError(
            f"there are {edges.count} undirected edges, too few to hide some and learn from the others: at least "
            f"{_FEWEST}"
        )
    if not any(mask in graphs[0] for mask in MASKS):
        return random_split(edges.count, fractions, seed=seed)
    masks: Mapping[str, Array] = {
        mask: edges.of_first_direction(_mask(graphs, mask)) for mask in MASKS if mask in graphs[0]
    }
    divisions = splits_of_masks(masks, np.ones((edges.count, 1), dtype=np.float32))
    if len(divisions) > 1:
        raise DataError(
            f"the masks have {len(divisions)} columns, one per fold; of links there is one division: choose a column"
        )
    return divisions[0]


def _mask(graphs: Sequence[Data], name: str) -> Array:
    for number, graph in enumerate(graphs):
        if len(graph[name]) != graph.num_edges:
            raise DataError(
                f"graph {number}: {name} has {len(graph[name])} rows and the graph {graph.num_edges} edges; of links "
                "a mask says which edges are in a part"
            )
    return torch.cat([graph[name] for graph in graphs]).numpy()


def _with_edges(graph: Data, keep: Array, of_edges: Sequence[str]) -> Data:
    """The graph with some of its edges and what stands on them."""
    chosen = torch.from_numpy(np.flatnonzero(keep))
    values = {key: value[chosen] if key in of_edges else value for key, value in graph.to_dict().items()}
    values["edge_index"] = graph.edge_index.reshape(2, -1)[:, chosen]
    values["num_nodes"] = graph.num_nodes
    return Data(**values)


def _questions(packed: PackedGraphs, edges: UndirectedEdges, splits: Splits, seed: int) -> tuple[LinkGraphs, Splits]:
    """The graphs with all pairs that are asked for, and the rows of these in each part."""
    known = np.sort(pair_codes(packed.node_ptr, edges.graph, edges.ends))
    rng = np.random.default_rng([seed, _DRAWS])
    each: list[tuple[Index, Index, float, int]] = []  # graph and ends of pairs, whether they are joined, their part
    for number, name in enumerate(NAMES):
        joined = splits[name]
        each.append((edges.graph[joined], edges.ends[:, joined], 1.0, number))
        if name == "train":
            continue
        wanted = np.bincount(edges.graph[joined], minlength=len(packed))
        graph, unjoined = draw_unjoined(packed.node_ptr, wanted, known, rng, distinct=True)
        if not len(graph):
            raise DataError(
                f"all pairs of nodes are joined in the graphs with {name} edges: there is nothing to tell links from"
            )
        known = np.union1d(known, pair_codes(packed.node_ptr, graph, unjoined))
        each.append((graph, unjoined, 0.0, number))
    graph = np.concatenate([one[0] for one in each])
    order = np.argsort(graph, kind="stable")
    counts = [len(one[0]) for one in each]
    y = np.repeat(np.array([one[2] for one in each], dtype=np.float32), counts)
    part = np.repeat([one[3] for one in each], counts)[order]
    pairs = np.concatenate([one[1] for one in each], axis=1)[:, order]
    links = LinkGraphs.of(packed, np.bincount(graph, minlength=len(packed)), pairs, y[order, None])
    return links, {name: np.flatnonzero(part == number) for number, name in enumerate(NAMES)}
