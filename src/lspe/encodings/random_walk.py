"""Random walk encoding (RWPE): how probable it is to be back at a node after 1, 2, … k steps."""

import torch
from torch import Tensor

from lspe.encodings.graphs import check_count, check_graphs, normalised_adjacency
from lspe.encodings.kinds import EncodingKind
from lspe.ops import fusible
from lspe.ops.fused.small_graphs import return_probabilities

PROBES = 64
"""Of the estimate for large graphs; the time grows with them, the error falls with their root."""


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

    It is exact at every size: computed in float64, rounded once, and dependent on nothing else in the batch. A graph of
    20,000 nodes takes some tens of megabytes; 16 steps take about a second on a ring or a mesh, where walks stay near,
    and less than a minute where they soon reach every node. For much larger graphs of the second kind there is
    :func:`~lspe.encodings.estimate_random_walk_encoding`, which sets of graphs use by themselves
    (:mod:`lspe.data.packed.cached_encodings`).

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
        return_probabilities(graphs.small(), encoding)
    else:
        for chunk in graphs.small_chunks():
            chunk.write(_return_probabilities(chunk.adjacency, k), encoding)
    for graph in graphs.large():
        from lspe.encodings.large_walks import return_probabilities_in_blocks  # scipy takes long to load

        probabilities = return_probabilities_in_blocks(graphs.sparse_adjacency(graph), k)
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


def _estimate(edge_index: Tensor, num_nodes: int, k: int) -> Tensor:
    from lspe.encodings.estimate import estimate_random_walk_encoding  # scipy.stats takes long to load

    return estimate_random_walk_encoding(edge_index, num_nodes, k, probes=PROBES).value


RWPE = EncodingKind(
    name="rwpe",
    title="Random walk",
    columns="steps of the walk",
    attribute="random_walk_pe",  # PyG's name
    equation=r"p_i = [\mathrm{RW}_{ii}, \mathrm{RW}^2_{ii}, \dots, \mathrm{RW}^k_{ii}]",
    compute=random_walk_encoding,
    estimate=_estimate,
)
