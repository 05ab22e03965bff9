"""Laplacian encoding (LapPE): the eigenvectors of the normalised graph Laplacian."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from lspe.encodings.graphs import DenseChunk, Graphs, check_count, check_graphs, normalised_adjacency
from lspe.encodings.kinds import EncodingKind
from lspe.ops import fusible
from lspe.ops.fused.library import Refused
from lspe.ops.fused.small_graphs import laplacian_eigenpairs

_TIE = 1e-6


class LaplacianEigen(NamedTuple):
    r"""Eigenvectors :math:`[N, k]` and eigenvalues :math:`[B, k]`, zero where a graph has no more."""

    vectors: Tensor
    values: Tensor


@torch.no_grad()
def laplacian_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> LaplacianEigen:
    r"""The Laplacian encoding of every node of one graph or of a batch of graphs

    .. math::
        p_i^{\textrm{LapPE}} = [U_{i1}, U_{i2}, \dots, U_{ik}], \qquad
        \Delta = \textrm{I}_n - D^{-1/2} A D^{-1/2} = U \Lambda U^{\top}

    with the eigenvalues ascending and the first eigenvector :math:`U_{i0}` left out. The graph is made
    undirected first: an edge in one direction counts as one in both. An isolated node has
    :math:`\Delta_{ii} = 1`. A graph of n nodes has n − 1 columns; the others and their eigenvalues are zero.

    An eigenvector is determined up to its sign. Here its largest entry is positive, and among entries that
    are equally large up to rounding the one of the lowest node number. The eigenvectors of an eigenvalue that
    occurs several times are some orthonormal basis. See :func:`random_signs` for training.

    Args:
        edge_index: Edges, first row source and second row target.
        num_nodes: Number of nodes in total; may be ``None`` where `batch` is given.
        k: Number of eigenvectors, may be larger than a graph.
        edge_weight: Weights, finite and not negative; ones if left out.
        batch: The graph of each node, ascending; all nodes are one graph if left out.
        dtype: Of the result. It is computed in float64.

    Shapes:
        - **edge_index:** :math:`[2, E]`
        - **edge_weight:** :math:`[E]`
        - **batch:** :math:`[N]`
        - **output:** vectors :math:`[N, k]`, values :math:`[B, k]`

    """
    check_count(k, "k")
    graphs = check_graphs(edge_index, num_nodes, edge_weight=edge_weight, batch=batch)
    device = edge_index.device
    vectors = torch.zeros(graphs.num_nodes, k, dtype=dtype, device=device)
    values = torch.zeros(graphs.num_graphs, k, dtype=dtype, device=device)
    if not _eigenpairs_in_c(graphs, vectors, values):
        for chunk in graphs.small_chunks():
            chunk_values, chunk_vectors = _eigenpairs(chunk, k)
            chunk.write(_with_fixed_sign(chunk_vectors), vectors)
            values[torch.from_numpy(chunk.graphs)] = chunk_values.to(dtype).to(device)
    for graph in graphs.large():
        from lspe.encodings.sparse_eigen import smallest_laplacian_eigenpairs  # scipy takes long to load

        large_values, large_vectors = smallest_laplacian_eigenpairs(graphs.sparse_adjacency(graph), k + 1)
        columns = large_values.size - 1
        signed = _with_fixed_sign(torch.from_numpy(large_vectors[None, :, 1:]))
        vectors[graphs.nodes_of(graph), :columns] = signed[0].to(dtype).to(device)
        values[graph, :columns] = torch.from_numpy(large_values[1:]).to(dtype).to(device)
    return LaplacianEigen(vectors, values)


def laplacian_vectors(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The eigenvectors of :func:`laplacian_encoding` alone, ``[N, k]``."""
    return laplacian_encoding(edge_index, num_nodes, k, edge_weight=edge_weight, batch=batch, dtype=dtype).vectors


def laplacian_projections(edge_index: Tensor, num_nodes: int, k: int) -> Tensor:
    r"""What of the Laplacian encoding of one graph depends neither on signs nor on the basis of an eigenvalue that
    occurs several times: for each of the k eigenvalues itself, and how much of a node lies in its space

    .. math::
        \Big[\lambda_1, \sum_{m : \lambda_m = \lambda_1} U_{im}^2, \; \dots, \;
        \lambda_k, \sum_{m : \lambda_m = \lambda_k} U_{im}^2\Big]

    Shapes:
        - **output:** :math:`[n, 2k]`, float64
    """
    encoding = torch.zeros(num_nodes, k, 2, dtype=torch.float64)
    for chunk in check_graphs(edge_index, num_nodes).dense_chunks():
        n = num_nodes
        s = normalised_adjacency(chunk.adjacency)[0, :n, :n]
        values, vectors = torch.linalg.eigh(torch.eye(n, dtype=s.dtype) - s)
        begins = torch.cat([torch.zeros(1, dtype=torch.bool), values.diff() > _TIE])
        space = begins.cumsum(0)
        squares = torch.zeros(n, n, dtype=s.dtype).index_add(1, space, vectors.square())[:, space]
        columns = min(k, n - 1)
        encoding[:, :columns, 0], encoding[:, :columns, 1] = values[1 : columns + 1], squares[:, 1 : columns + 1]
    return encoding.flatten(1)


LAPPE = EncodingKind(
    name="lappe",
    title="Laplacian",
    columns="eigenvectors",
    attribute="laplacian_eigenvector_pe",  # PyG's name
    equation=r"p_i = [U_{i1}, \dots, U_{ik}], \quad \Delta = I - D^{-1/2} A D^{-1/2} = U \Lambda U^{\top}",
    compute=laplacian_vectors,
    has_signs=True,
    comparable=laplacian_projections,
)


def random_signs(vectors: Tensor, batch: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
    r"""Multiply each eigenvector of each graph by +1 or −1 at random.

    For training: the network learns that the sign means nothing. At evaluation the signs of
    :func:`laplacian_encoding` stay.

    Shapes:
        - **vectors:** :math:`[N, k]`
        - **batch:** :math:`[N]`, the graph of each node; all nodes are one graph if left out
        - **output:** :math:`[N, k]`
    """
    num_graphs = 1 if batch is None else int(batch.max()) + 1 if batch.numel() else 0
    coins = torch.randint(0, 2, (num_graphs, vectors.size(1)), generator=generator, device=vectors.device)
    signs = (2 * coins - 1).to(vectors.dtype)
    return vectors * (signs if batch is None else signs[batch])


def _eigenpairs_in_c(graphs: Graphs, vectors: Tensor, values: Tensor) -> bool:
    """Whether the small graphs have been served by the operators in C."""
    if not fusible(vectors, values):
        return False
    try:
        laplacian_eigenpairs(graphs.small(), vectors, values)
    except Refused:
        return False
    return True


def _eigenpairs(chunk: DenseChunk, k: int) -> tuple[Tensor, Tensor]:
    r"""Eigenvalues 1 to k and their eigenvectors, zero from the graph's size on.

    The rows that pad a matrix get the eigenvalue 3, above all of the Laplacian's, which are at most 2.

    Shapes:
        - **output:** :math:`[b, k]` and :math:`[b, n, k]`
    """
    diagonal = torch.where(chunk.is_node, 1.0, 3.0).double()
    values, vectors = torch.linalg.eigh(diagonal.diag_embed() - normalised_adjacency(chunk.adjacency))
    missing = max(0, k + 1 - values.size(1))
    values, vectors = pad(values, (0, missing))[:, 1 : k + 1], pad(vectors, (0, missing))[:, :, 1 : k + 1]
    exists = torch.from_numpy(np.arange(1, k + 1) < chunk.sizes[:, None]).to(values.device)
    return values.clamp(min=0.0) * exists, vectors * exists[:, None, :]


def _with_fixed_sign(vectors: Tensor) -> Tensor:
    """Make the largest entry of each column positive; of equally large ones, the first.

    Shapes:
        - **vectors:** :math:`[b, n, k]`
        - **output:** :math:`[b, n, k]`
    """
    size = vectors.abs()
    first_largest = (size >= (1 - _TIE) * size.amax(1, keepdim=True)).byte().argmax(1, keepdim=True)
    return torch.where(vectors.gather(1, first_largest) < 0, -vectors, vectors)
