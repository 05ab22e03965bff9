"""Graphs that are hard to tell apart, and how many of many an encoding does."""

import networkx as nx
import numpy as np
import torch
from networkx.generators.atlas import graph_atlas_g
from torch_geometric.data import Batch

from lspe.encodings import all_pairs, encode, encode_pairs, find_kind
from lspe.encodings.distinct import split_by_columns
from lspe.encodings.tell_apart import DIGITS
from lspe.isomorphism import weisfeiler_lehman_test
from tests.graphs import from_networkx

NODES, K = 7, 16


def rook_and_shrikhande() -> tuple[nx.Graph, nx.Graph]:
    """Strongly regular with the same figures: (16, 6, 2, 2)."""
    rook = nx.line_graph(nx.complete_bipartite_graph(4, 4))
    steps = [(0, 1), (1, 0), (1, 1)]
    places = [(i, j) for i in range(4) for j in range(4)]
    shrikhande = nx.Graph([((i, j), ((i + a) % 4, (j + b) % 4)) for i, j in places for a, b in steps])
    return rook, shrikhande


PAIRS = {
    "decalin, bicyclopentyl": ("C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1"),
    "two triangles, ring of six": (nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)), nx.cycle_graph(6)),
    "CSL(11, 2), CSL(11, 3)": (nx.circulant_graph(11, [1, 2]), nx.circulant_graph(11, [1, 3])),
    "isospectral circulants": (nx.circulant_graph(20, [1, 2, 3, 8]), nx.circulant_graph(20, [1, 2, 7, 8])),
    "rook, Shrikhande": rook_and_shrikhande(),
}
"""Pairs of different graphs that 1-WL cannot tell apart."""


def connected_graphs() -> list[nx.Graph]:
    """All 853 connected graphs of seven nodes."""
    return [graph for graph in graph_atlas_g() if len(graph) == NODES and nx.is_connected(graph)]


def classes(kind: str, graphs: list[nx.Graph]) -> int:
    """How many of these graphs, all of seven nodes, differ from each other in their encodings."""
    found, batch = find_kind(kind), Batch.from_data_list([from_networkx(graph) for graph in graphs])
    k = found.width or K
    if found.level == "pair":
        pairs = all_pairs(0, batch.batch)
        values = encode_pairs(kind, batch.edge_index, None, k, pairs=pairs, batch=batch.batch, dtype=torch.float64)
        start = (pairs[0] == pairs[1]).long()
    elif found.comparable is not None:
        values = torch.cat([found.comparable(data.edge_index, NODES, k) for data in batch.to_data_list()])
        start = torch.zeros(len(values), dtype=torch.long)
    else:
        values = encode(kind, batch.edge_index, None, k, batch=batch.batch, dtype=torch.float64)
        start = torch.zeros(len(values), dtype=torch.long)
    *_, kinds = split_by_columns(start, values, digits=DIGITS)
    nodes = kinds.numpy()
    if found.level == "pair":
        rows = np.sort(nodes.reshape(-1, NODES), axis=1)
        nodes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return len(np.unique(np.sort(nodes.reshape(-1, NODES), axis=1), axis=0))


def weisfeiler_lehman_classes(graphs: list[nx.Graph]) -> int:
    """How many of these graphs 1-WL tells from each other; it is told the number of edges by the first colours."""
    by_colours: dict[tuple[int, ...], list[nx.Graph]] = {}
    for graph in graphs:
        same = by_colours.setdefault(tuple(sorted(degree for _, degree in graph.degree)), [])
        if all(weisfeiler_lehman_test(graph, other).step is not None for other in same):
            same.append(graph)
    return sum(map(len, by_colours.values()))
