"""Random walk encoding (RWPE): how probable it is to be back at a node after 1, 2, … k steps."""

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.encodings.graphs import (
    check_count,
    check_graphs,
    normalised_adjacency,
    normalised_sparse_adjacency,
)
from lspe.encodings.kinds import EncodingKind
from lspe.ops import fusible
from lspe.ops.fused.small_graphs import return_probabilities

_LARGEST_DENSE = 256
_BLOCK_ELEMENTS = 2**20


@torch.no_grad()
def random_walk_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The random walk encoding of every node of one graph or of a batch of graphs

    .. math::
        p_i^{\textrm{RWPE}} = [\textrm{RW}_{ii}, \textrm{RW}^2_{ii}, \dots, \textrm{RW}^k_{ii}], \qquad
        \textrm{RW}_{ij} = \frac{w_{ij}}{\sum_j w_{ij}}

    The walk follows the edges i → j with a probability in proportion to their weight. Self loops are steps,
    parallel edges add up. A node without out-edges, or whose weights are all zero, has the row zero. On an
    undirected graph these are also the diagonals of the paper's :math:`A D^{-1}`.

    It is computed in float64 and rounded once, and depends on nothing else in the batch.

    Args:
        edge_index: Edges, first row source and second row target.
        num_nodes: Number of nodes in total; may be ``None`` where `batch` is given.
        k: Number of steps, may be larger than a graph.
        edge_weight: Weights, finite and not negative; ones if left out.
        batch: The graph of each node, ascending; all nodes are one graph if left out.
        dtype: Of the result.

    Shapes:
        - **edge_index:** :math:`[2, E]`
        - **edge_weight:** :math:`[E]`
        - **batch:** :math:`[N]`
        - **output:** :math:`[N, k]`

    """
    check_count(k, "k")
    graphs = check_graphs(edge_index, num_nodes, edge_weight=edge_weight, batch=batch)
    encoding = torch.zeros(graphs.num_nodes, k, dtype=dtype, device=edge_index.device)
    if fusible(encoding):
        return_probabilities(graphs.small(_LARGEST_DENSE), encoding)
    else:
        for chunk in graphs.dense_chunks(_LARGEST_DENSE):
            chunk.write(_return_probabilities(chunk.adjacency, k), encoding)
    for graph in graphs.larger_than(_LARGEST_DENSE):
        probabilities = _return_probabilities_in_blocks(graphs.sparse_adjacency(graph), k)
        encoding[graphs.nodes_of(graph)] = torch.from_numpy(probabilities).to(dtype).to(encoding.device)
    return encoding


def _return_probabilities(adjacency: Tensor, k: int) -> Tensor:
    r"""The diagonals of RW, …, RW^k of small graphs.

    An undirected graph has :math:`(\textrm{RW}^t)_{ii} = (S^t)_{ii}` with the symmetric
    :math:`S = D^{-1/2} A D^{-1/2}`.

    Shapes:
        - **adjacency:** :math:`[b, n, n]`
        - **output:** :math:`[b, n, k]`
    """
    undirected = (adjacency == adjacency.transpose(1, 2)).flatten(1).all(1)
    if undirected.all():
        return _diagonals_of_powers(normalised_adjacency(adjacency), k, symmetric=True)
    total = adjacency.sum(2, keepdim=True)
    walk = torch.where(total > 0, adjacency / total, 0.0)
    diagonals = _diagonals_of_powers(walk, k, symmetric=False)
    diagonals[undirected] = _diagonals_of_powers(normalised_adjacency(adjacency[undirected]), k, symmetric=True)
    return diagonals


def _diagonals_of_powers(matrix: Tensor, k: int, *, symmetric: bool) -> Tensor:
    r"""The diagonals of M, …, M^k from the powers up to ⌈k/2⌉ only:
    :math:`(M^{a+b})_{ii} = \sum_j (M^a)_{ij} (M^b)_{ji}`.

    Shapes:
        - **matrix:** :math:`[b, n, n]`
        - **output:** :math:`[b, n, k]`
    """
    powers = matrix.new_empty((k + 1) // 2, *matrix.shape)
    powers[0] = matrix
    for half in range(1, powers.size(0)):
        torch.bmm(powers[half - 1], matrix, out=powers[half])
    transposed = powers if symmetric else powers.transpose(2, 3)

    diagonals = matrix.new_empty(k, *matrix.shape[:2])
    diagonals[0] = matrix.diagonal(dim1=1, dim2=2)
    diagonals[1::2] = (powers * transposed).sum(3)[: k // 2]
    diagonals[2::2] = (powers[1:] * transposed[:-1]).sum(3)
    return diagonals.permute(1, 2, 0)


def _return_probabilities_in_blocks(adjacency: scipy.sparse.csr_array, k: int) -> NDArray[np.float64]:
    r"""The same for one large graph, from a block of columns of the powers at a time.

    An undirected graph has :math:`(\textrm{RW}^t)_{ii} = (S^t)_{ii}` with the symmetric
    :math:`S = D^{-1/2} A D^{-1/2}`, whose columns are its rows: half the products again. Memory is the
    graph's own and a few blocks of about eight megabytes.

    Shapes:
        - **adjacency:** :math:`[n, n]`
        - **output:** :math:`[n, k]`
    """
    n = adjacency.shape[0]
    walk, undirected = walk_matrix(adjacency)
    if 16 * walk.nnz > n * n:
        walk = walk.toarray()

    diagonals = np.empty((n, k))
    width = max(1, _BLOCK_ELEMENTS // n)
    for start in range(0, n, width):
        nodes = np.arange(start, min(start + width, n))
        columns = np.zeros((n, nodes.size))
        columns[nodes, nodes - start] = 1.0
        if undirected:
            for step in range(1, k + 1, 2):
                previous, columns = columns, walk @ columns
                diagonals[nodes, step - 1] = np.einsum("ij,ij->j", previous, columns)
                if step < k:
                    diagonals[nodes, step] = np.einsum("ij,ij->j", columns, columns)
        else:
            for step in range(k):
                columns = walk @ columns
                diagonals[nodes, step] = columns[nodes, nodes - start]
    return diagonals


def walk_matrix(adjacency: scipy.sparse.csr_array) -> tuple[scipy.sparse.csr_array, bool]:
    """A matrix whose powers have the diagonals of RW's, and whether the graph is undirected.

    It is the symmetric S where the graph is undirected, else RW itself.
    """
    if (adjacency != adjacency.T).nnz == 0:
        return normalised_sparse_adjacency(adjacency), True
    total = adjacency.sum(1)
    edges = adjacency.tocoo()
    return scipy.sparse.csr_array((edges.data / total[edges.row], edges.coords), shape=edges.shape), False


RWPE = EncodingKind(
    name="rwpe",
    title="Random walk",
    columns="steps of the walk",
    attribute="random_walk_pe",  # PyG's name
    equation=r"p_i = [\mathrm{RW}_{ii}, \mathrm{RW}^2_{ii}, \dots, \mathrm{RW}^k_{ii}]",
    compute=random_walk_encoding,
)
