"""Random walks on one large graph, held as a sparse matrix."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from lspe.encodings.graphs import normalised_sparse_adjacency

Matrix = NDArray[np.float64]
Operator = Any
"""A matrix, sparse or dense."""

_BLOCK_ELEMENTS = 2**19
_FULL = 1 / 16


def return_probabilities_in_blocks(adjacency: scipy.sparse.csr_array, k: int) -> Matrix:
    r"""The diagonals of RW, …, RW^k, exact, for as many nodes at a time as make a block.

    :math:`(\mathrm{RW}^{a+b})_{ii} = \sum_j (\mathrm{RW}^a)_{ij} (\mathrm{RW}^b)_{ji}`: half of the steps are walked
    forwards, half backwards, and neither half leaves the nodes within ⌈k/2⌉ steps of the block. Nodes are put in
    an order in which neighbours are close together, so that on a ring, a mesh or a molecule a block has few such nodes
    and the time grows with n; where walks soon reach every node it grows with n².

    Memory is a few times the graph's own and four blocks of about four megabytes. The matrix is dense where more than
    a sixteenth of all pairs are edges.

    Shapes:
        - **adjacency:** :math:`[n, n]`
        - **output:** :math:`[n, k]`
    """
    n = adjacency.shape[0]
    walk, undirected = walk_matrix(adjacency)
    linked = walk.astype(bool) if undirected else (walk + walk.T).astype(bool)
    order = reverse_cuthill_mckee(linked, symmetric_mode=True)
    walk, linked = walk[order][:, order], linked[order][:, order]
    whole = _dense_where_full(walk)

    diagonals = np.empty((n, k))
    width = max(1, _BLOCK_ELEMENTS // n)
    for start in range(0, n, width):
        block = np.arange(start, min(start + width, n))
        near = _within(linked, block, (k + 1) // 2)
        local = whole if near.size == n else _dense_where_full(walk[near][:, near])
        ends = np.zeros((near.size, block.size))
        ends[np.searchsorted(near, block), np.arange(block.size)] = 1.0
        for step, (there, back) in enumerate(halves(local, undirected, ends, k)):
            diagonals[order[block], step] = np.einsum("ij,ij->j", there, back)
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


def halves(walk: Operator, symmetric: bool, x: Matrix, steps: int) -> Iterator[tuple[Matrix, Matrix]]:
    """For each number of steps a + b from 1 on: RW^a x and (RW^b)ᵀ x, of which a is ⌈steps / 2⌉."""
    backwards = walk if symmetric else walk.T
    there = back = x
    for step in range(1, steps + 1):
        if step % 2:
            there = walk @ there
        else:
            back = there if symmetric else backwards @ back
        yield there, back


def _within(linked: scipy.sparse.csr_array, nodes: NDArray[np.int64], steps: int) -> NDArray[np.int64]:
    """The nodes at most so many steps away, in either direction, in order."""
    near = np.zeros(linked.shape[0], dtype=bool)
    near[nodes] = True
    for _ in range(steps):
        if near.all():
            break
        near |= linked @ near
    return np.flatnonzero(near)


def _dense_where_full(matrix: scipy.sparse.csr_array) -> Operator:
    n = matrix.shape[0]
    return matrix.toarray() if matrix.nnz > _FULL * n * n else matrix
