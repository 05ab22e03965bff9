"""Graphs for the tests: named examples of the paper and hypothesis strategies for random ones."""

from collections.abc import Iterable
from typing import Any

import networkx as nx
import torch
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data


def from_edges(num_nodes: int, edges: Iterable[tuple[int, int]]) -> Data:
    """An undirected graph: every pair of `edges` is stored in both directions."""
    pairs = [pair for i, j in edges for pair in ((i, j), (j, i))]
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()
    return Data(edge_index=edge_index, num_nodes=num_nodes)


def from_networkx(graph: Any) -> Data:
    nodes = {node: i for i, node in enumerate(graph)}
    return from_edges(len(nodes), [(nodes[i], nodes[j]) for i, j in graph.edges])


def ring(n: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % n) for i in range(n)]


def decalin() -> Data:
    """Two six-rings that share a bond."""
    return from_edges(10, [*ring(10), (0, 5)])


def bicyclopentyl() -> Data:
    """Two five-rings joined by a bond: 1-WL cannot tell it from decalin."""
    return from_edges(10, [*ring(5), *[(i + 5, j + 5) for i, j in ring(5)], (0, 5)])


def csl(n: int, skip: int) -> Data:
    """Circulant skip link graph: node i is joined to i ± 1 and i ± skip."""
    return from_edges(n, [*ring(n), *[(i, (i + skip) % n) for i in range(n)]])


CSL_SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
"""The ten classes of the CSL benchmark, n = 41."""


def cubic_8() -> Data:
    """A 3-regular graph on 8 nodes with three kinds of nodes: {0, 1, 4, 5}, {2, 7} and {3, 6}."""
    return from_edges(
        8,
        [(0, 1), (0, 6), (0, 7), (1, 3), (1, 7), (2, 4), (2, 5), (2, 7), (3, 4), (3, 6), (4, 5), (5, 6)],
    )


CORNER_CASES: dict[str, Data] = {
    "one node": from_edges(1, []),
    "two nodes, no edge": from_edges(2, []),
    "edgeless": from_edges(5, []),
    "one edge": from_edges(2, [(0, 1)]),
    "path": from_edges(3, [(0, 1), (1, 2)]),
    "star": from_edges(4, [(1, 0), (1, 2), (1, 3)]),
    "triangle, edge and isolated node": from_edges(6, [*ring(3), (3, 4)]),
    "first and last node isolated": from_edges(5, [(1, 2), (2, 3)]),
    "two equal parts": from_edges(6, [*ring(3), (3, 4), (4, 5), (5, 3)]),
    "complete": from_edges(5, [(i, j) for i in range(5) for j in range(i)]),
    "decalin": decalin(),
    "bicyclopentyl": bicyclopentyl(),
    "CSL(11,3)": csl(11, 3),
    "cubic on 8 nodes": cubic_8(),
    "tree": from_networkx(nx.full_rary_tree(3, 12)),
}
"""Small undirected graphs with all that is awkward: isolated nodes, no edges, several parts, symmetry."""


@st.composite
def random_graphs(
    draw: st.DrawFn,
    *,
    min_nodes: int = 1,
    max_nodes: int = 9,
    directed: bool = False,
    weighted: bool = False,
    self_loops: bool = False,
    parallel_edges: bool = False,
) -> Data:
    """A random `Data` with `edge_index`, `num_nodes` and, if `weighted`, float32 `edge_weight`.

    Few edges are as likely as many, so isolated nodes and disconnected graphs are common. Undirected
    graphs hold each edge in both directions, with the same weight. Zero is a possible weight.
    """
    n = draw(st.integers(min_nodes, max_nodes))
    nodes = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(nodes, nodes), max_size=2 * n, unique=not parallel_edges))
    if not self_loops:
        pairs = [(i, j) for i, j in pairs if i != j]
    if not directed and not parallel_edges:
        pairs = sorted({(min(i, j), max(i, j)) for i, j in pairs})
    weights = draw(
        st.lists(st.floats(0, 8, width=32, allow_subnormal=False), min_size=len(pairs), max_size=len(pairs))
        if weighted
        else st.just([1.0] * len(pairs))
    )
    if directed:
        edges = [(i, j, w) for (i, j), w in zip(pairs, weights, strict=True)]
    else:
        edges = [
            edge
            for (i, j), w in zip(pairs, weights, strict=True)
            for edge in ([(i, j, w), (j, i, w)] if i != j else [(i, i, w)])
        ]
    edge_index = torch.tensor([(i, j) for i, j, _ in edges], dtype=torch.long).reshape(-1, 2).t().contiguous()
    data = Data(edge_index=edge_index, num_nodes=n)
    if weighted:
        data.edge_weight = torch.tensor([w for _, _, w in edges], dtype=torch.float32)
    return data


def corner_cases() -> st.SearchStrategy[Data]:
    return st.sampled_from(list(CORNER_CASES.values())).map(lambda data: data.clone())


def random_batches(
    *, min_graphs: int = 1, max_graphs: int = 4, max_nodes: int = 9, **graph: bool
) -> st.SearchStrategy[Batch]:
    """Batches of random graphs and, when plain undirected ones are asked for, of the corner cases."""
    one = random_graphs(max_nodes=max_nodes, **graph)
    if not any(graph.values()):
        one = one | corner_cases()
    return st.lists(one, min_size=min_graphs, max_size=max_graphs).map(Batch.from_data_list)


def permuted(data: Data, order: torch.Tensor) -> Data:
    """The same graph with node `order[i]` of `data` renamed to i; edges keep their order."""
    renamed = torch.empty_like(order)
    renamed[order] = torch.arange(order.numel())
    return Data(edge_index=renamed[data.edge_index], edge_weight=data.edge_weight, num_nodes=int(order.numel()))


def permuted_batch(batch: Batch, generator: torch.Generator) -> tuple[Batch, torch.Tensor]:
    """Nodes of each graph renamed at random; also `order` [N]: new node i is old node `order[i]`."""
    orders = [
        torch.randperm(int(n), generator=generator) + int(start)
        for n, start in zip(batch.ptr.diff(), batch.ptr, strict=False)
    ]
    order = torch.cat(orders)
    whole = permuted(Data(edge_index=batch.edge_index, edge_weight=batch.edge_weight), order)
    renamed = batch.clone()
    renamed.edge_index = whole.edge_index
    return renamed, order
