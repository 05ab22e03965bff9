"""Encodings by other means than lspe's: networkx, scipy, and sums written out; graphs to compare on."""

from collections.abc import Iterator

import networkx as nx
import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

Array = NDArray[np.float64]


def two_hundred_graphs() -> Iterator[Data]:
    """Directed and undirected, with and without weights, self loops and parallel edges, of 1 to 14 nodes; few edges
    are as likely as many, so there are isolated nodes, several parts and dead ends.
    """
    random = np.random.default_rng(7)
    for number in range(200):
        n = int(random.integers(1, 15))
        edges = random.integers(0, n, (int(random.integers(0, 2 * n + 1)), 2))
        if number % 5:
            edges = edges[edges[:, 0] != edges[:, 1]]
        weight = random.uniform(0.25, 4.0, len(edges)) if number % 3 else np.ones(len(edges))
        if number % 2:
            loops = edges[:, 0] == edges[:, 1]
            edges = np.concatenate([edges, edges[~loops][:, ::-1]])
            weight = np.concatenate([weight, weight[~loops]])
        yield Data(
            edge_index=torch.from_numpy(edges.T.copy()).reshape(2, -1),
            edge_weight=torch.from_numpy(weight),
            num_nodes=n,
        )


def directed(data: Data) -> nx.DiGraph:
    """The graph with parallel edges added up."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    for (i, j), weight in zip(data.edge_index.t().tolist(), data.edge_weight.tolist(), strict=True):
        graph.add_edge(i, j, weight=graph.get_edge_data(i, j, {"weight": 0.0})["weight"] + weight)
    return graph


def undirected(data: Data) -> nx.Graph:
    """An edge in one direction counts as one in both, the larger one of two weights."""
    both, graph = directed(data), nx.Graph()
    graph.add_nodes_from(both)
    for i, j, weight in both.edges(data="weight"):
        graph.add_edge(i, j, weight=max(weight, graph.get_edge_data(i, j, {"weight": 0.0})["weight"]))
    return graph


def walk(data: Data) -> Array:
    """RW, row by row from the edges that leave a node."""
    graph, matrix = directed(data), np.zeros((data.num_nodes, data.num_nodes))
    for i in graph:
        total = graph.out_degree(i, weight="weight")
        for _, j, weight in graph.out_edges(i, data="weight"):
            matrix[i, j] = weight / total
    return matrix


def random_walks(data: Data, k: int) -> Array:
    """``[n, n, k]``."""
    return np.stack([np.linalg.matrix_power(walk(data), step) for step in range(1, k + 1)], axis=2)


def heat(data: Data, k: int) -> Array:
    """``[n, n, k]``: scipy's matrix exponential of networkx's Laplacian; an isolated node has 1 on its diagonal."""
    graph = undirected(data)
    laplacian = nx.normalized_laplacian_matrix(graph).toarray()
    for node in graph:
        if not graph.degree(node):
            laplacian[node, node] = 1.0
    return np.stack([scipy.linalg.expm(-time * laplacian) for time in range(1, k + 1)], axis=2)


def pagerank(data: Data, k: int) -> Array:
    """``[n, n, k]``: the walk written as a sum over its lengths, until what is left is nothing."""
    step, columns = walk(data), []
    for m in range(1, k + 1):
        alpha, term = 1 / (m + 1), np.eye(data.num_nodes) / (m + 1)
        total = term.copy()
        while term.max(initial=0.0) > 1e-17:
            term = (1 - alpha) * (term @ step)
            total += term
        columns.append(total)
    return np.stack(columns, axis=2)


def pagerank_of_networkx(data: Data, m: int) -> Array:
    """``[n, n]``: networkx's PageRank, personalised for each node and restarted there from dead ends.

    That restart makes each row sum to 1; a walk that is lost there is the same up to this factor.
    """
    graph, alpha, rows = directed(data), 1 / (m + 1), []
    for i in graph:
        found = nx.pagerank(graph, 1 - alpha, {i: 1.0}, max_iter=10_000, tol=1e-14, dangling={i: 1.0})
        lost = sum(found[j] for j in graph if graph.out_degree(j) == 0)
        rows.append([found[j] * alpha / (alpha + (1 - alpha) * lost) for j in graph])
    return np.array(rows)


def resistance(data: Data) -> Array:
    """``[n, n]``: networkx's resistance distance within each connected part, zero between parts."""
    graph = undirected(data)
    graph.remove_edges_from([*nx.selfloop_edges(graph)])
    matrix = np.zeros((data.num_nodes, data.num_nodes))
    for part in nx.connected_components(graph):
        if len(part) > 1:
            distances = nx.resistance_distance(graph.subgraph(part), weight="weight", invert_weight=False)
            for i, row in distances.items():
                for j, distance in row.items():
                    matrix[i, j] = distance
    return matrix
