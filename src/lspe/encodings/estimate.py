"""The random walk encoding of a graph that is too large for the exact one, with error bars."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.stats
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.encodings.graphs import check_count, check_graphs
from lspe.encodings.large_walks import Matrix, halves, walk_matrix

CONFIDENCE = 0.95
_PROBES_AT_ONCE = 16


class Estimate(NamedTuple):
    """``value`` ``[N, k]`` and ``error`` ``[N, k]``: the truth is within value ± error 19 times in 20."""

    value: Tensor
    error: Tensor


def estimate_random_walk_encoding(
    edge_index: Tensor,
    num_nodes: int,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    probes: int = 256,
    seed: int = 0,
) -> Estimate:
    r"""An unbiased estimate of :func:`~lspe.encodings.random_walk_encoding` for one large graph.

    With random signs z, :math:`E[z z^T] = I` and so

    .. math::
        (\mathrm{RW}^{a+b})_{ii} = \sum_j (\mathrm{RW}^a)_{ij} (\mathrm{RW}^b)_{ji}
            = E\big[(\mathrm{RW}^a z)_i \, ({\mathrm{RW}^b}^T z)_i\big].

    Where the graph is undirected, what all walks tend to is known: each connected part has the eigenvector
    :math:`u_i = \sqrt{D_i / \sum_j D_j}` of eigenvalue 1, and if it is bipartite :math:`\pm u_i`, by the side of the
    node, of eigenvalue −1. They are taken out of the probes and their :math:`u_i^2` added to the result, so that only
    the rest is estimated; otherwise late steps of all nodes would err together.

    Each probe z costs about k products with a sparse matrix (k / 2 where the graph is undirected), whatever the number
    of nodes; memory is O(N · k). The mean over the probes is the value; the error is Student's 95 % interval of that
    mean and falls with the root of their number. The first two steps need no probe: they are exact and their error is
    zero.

    Args:
        edge_index: ``[2, E]``.
        num_nodes: N.
        k: number of steps.
        edge_weight: ``[E]``, finite and not negative; ones if left out.
        probes: how many z; four times as many halve the error.
        seed: of the random signs.

    """
    check_count(k, "k")
    check_count(probes, "probes")
    if probes < 2:
        raise ValueError("an error bar needs at least 2 probes")
    graph = check_graphs(edge_index, num_nodes, edge_weight=edge_weight)
    adjacency = graph.sparse_adjacency(0)
    walk, undirected = walk_matrix(adjacency)
    limit = _Limit(adjacency) if undirected else None
    exact = _first_two_steps(walk)[:, :k]

    random = np.random.default_rng(seed)
    total = np.zeros((num_nodes, k))
    total_square = np.zeros((num_nodes, k))
    for first in range(0, probes, _PROBES_AT_ONCE):
        width = min(_PROBES_AT_ONCE, probes - first)
        signs: Matrix = random.choice([-1.0, 1.0], (num_nodes, width))
        if limit is not None:
            signs -= limit.project(signs)
        for step, (there, returning) in enumerate(halves(walk, undirected, signs, k)):
            sample = there * returning
            total[:, step] += sample.sum(1)
            total_square[:, step] += (sample * sample).sum(1)

    mean = total / probes
    variance = np.maximum(total_square - probes * mean**2, 0.0) / (probes - 1)
    if limit is not None:
        mean += limit.after(k)
    quantile = scipy.stats.t.ppf((1 + CONFIDENCE) / 2, probes - 1)
    error = quantile * np.sqrt(variance / probes)
    mean[:, : exact.shape[1]], error[:, : exact.shape[1]] = exact, 0.0
    return Estimate(torch.from_numpy(mean).float(), torch.from_numpy(error).float())


class _Limit:
    """What the walks of an undirected graph tend to.

    Each connected part has an eigenvector u of eigenvalue 1; a bipartite one also u with the sign of the side, of
    eigenvalue −1: its walks come back after even steps only.
    """

    def __init__(self, adjacency: scipy.sparse.csr_array) -> None:
        degree = adjacency.sum(1)
        parts, part = scipy.sparse.csgraph.connected_components(adjacency, directed=False)
        volume = np.bincount(part, degree, parts)[part]
        self.vector = np.sqrt(np.divide(degree, volume, out=np.zeros_like(degree), where=volume > 0))
        self.signed = self.vector * _side(adjacency)
        nodes = np.arange(part.size)
        self._rows = [
            scipy.sparse.csr_array((vector, (part, nodes)), shape=(parts, part.size))
            for vector in (self.vector, self.signed)
        ]

    def project(self, x: Matrix) -> Matrix:
        """The part of x, ``[N, width]``, that lies in these eigenvectors; they are orthogonal."""
        return sum(rows.T @ (rows @ x) for rows in self._rows)

    def after(self, steps: int) -> Matrix:
        """What they contribute to the diagonal of each power up to ``steps``, ``[N, steps]``."""
        sign = np.where(np.arange(1, steps + 1) % 2, -1.0, 1.0)
        return self.vector[:, None] ** 2 + sign * self.signed[:, None] ** 2


def _side(adjacency: scipy.sparse.csr_array) -> NDArray[np.float64]:
    """``[N]``: 1 or −1, the side of a node in a bipartite part; 0 in other parts.

    In the double cover of the graph, where each edge joins a node of the first copy to one of the second, a part falls
    into two exactly if it is bipartite.
    """
    n = adjacency.shape[0]
    cover = scipy.sparse.block_array([[None, adjacency], [adjacency.T, None]], format="csr")
    _, label = scipy.sparse.csgraph.connected_components(cover, directed=False)
    return np.sign(label[:n] - label[n:]).astype(np.float64)


def _first_two_steps(walk: scipy.sparse.csr_array) -> Matrix:
    """The diagonals of RW and RW², ``[N, 2]``: self loops, and there and back over one edge."""
    return np.stack([walk.diagonal(), walk.multiply(walk.T).sum(1)], axis=1)
