"""Effective resistance encoding: the graph as a net of resistors, measured from each node."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn.functional import pad

from lspe.encodings.dense import encode_nodes, encode_pairs
from lspe.encodings.graphs import DenseChunk
from lspe.encodings.kinds import EncodingKind
from lspe.errors import UserError

_LARGEST_RESIDUAL = 1e-6
_LARGEST = torch.finfo(torch.float32).max


def resistance_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The effective resistances from every node to the k nodes nearest by it, of one graph or of a batch of graphs

    .. math::
        p_i = \mathrm{sort}\big(\{\{\, R_{ij} \mid j \ne i \,\}\}\big)_{1, \dots, k}, \qquad
        R_{ij} = L^+_{ii} + L^+_{jj} - 2 L^+_{ij}, \qquad L = D - A

    ascending, with the pseudo-inverse :math:`L^+`. Weights are conductances. :math:`R_{ij}` falls with each further
    way from i to j, and grows with the length of all: it is the time there and back of a random walk, divided by the
    sum of all degrees.

    Only nodes that a path joins count; where a node has fewer than k of them the other columns are zero. The graph is
    made undirected first: an edge in one direction counts as one in both. Self loops carry no current.
    In one connected part the weights may differ by ten orders of magnitude or so; where they differ too much for
    float64 it is an error.

    ``k`` is the number of nearest nodes; the result is ``[N, k]``. The other arguments are those of
    :func:`~lspe.encodings.random_walk_encoding`.
    """
    return encode_nodes(_nearest, edge_index, num_nodes, k, edge_weight=edge_weight, batch=batch, dtype=dtype)


def resistance_pair_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    pairs: Tensor | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The effective resistance between two nodes, for pairs of nodes of one graph or of a batch of graphs

    .. math::
        p_{ij} = R_{ij} = L^+_{ii} + L^+_{jj} - 2 L^+_{ij}, \qquad L = D - A

    It is zero where no path joins i and j (of a node and itself it is zero anyway). Directions, weights and self loops
    are as those of :func:`resistance_encoding`.

    ``k`` is the number of columns, 1; the result is ``[P, k]``. The other arguments are those of
    :func:`~lspe.encodings.encode_pairs`.
    """
    return encode_pairs(
        _as_column, edge_index, num_nodes, k, pairs=pairs, edge_weight=edge_weight, batch=batch, dtype=dtype
    )  # fmt: skip


def _as_column(chunk: DenseChunk, k: int) -> Iterator[Tensor]:
    yield _resistances(chunk)[0]


def _nearest(chunk: DenseChunk, k: int) -> Tensor:
    """``[b, n, k]``."""
    resistance, joined = _resistances(chunk)
    ascending = torch.where(joined, resistance, torch.inf).sort(2).values
    nearest = pad(ascending, (0, max(0, k - ascending.size(2))), value=torch.inf)[:, :, :k]
    return torch.where(nearest.isinf(), 0.0, nearest)


def _resistances(chunk: DenseChunk) -> tuple[Tensor, Tensor]:
    r"""``[b, n, n]`` each: R, zero between nodes that no path joins, and which two different nodes one joins.

    The pseudo-inverse of a connected part of s nodes is :math:`L^+ = (L + 1 1^{\top} / s)^{-1} - 1 1^{\top} / s`, and
    what is subtracted cancels in R.
    """
    conductance = torch.maximum(chunk.adjacency, chunk.adjacency.transpose(1, 2))
    conductance.diagonal(dim1=1, dim2=2).zero_()
    part = _connected_parts(conductance)
    together = (part[:, :, None] == part[:, None, :]).double()
    unit = conductance.amax(2, keepdim=True)
    unit = (unit.transpose(1, 2) * together).amax(2, keepdim=True)  # the largest conductance of each part
    unit = torch.where(unit > 0, unit, 1.0)
    conductance = conductance / unit
    laplacian = conductance.sum(2).diag_embed() - conductance
    matrix = laplacian + together / together.sum(2, keepdim=True)
    inverse = torch.linalg.inv_ex(matrix).inverse
    identity = torch.eye(matrix.size(1), dtype=matrix.dtype, device=matrix.device)
    if not bool((matrix @ inverse - identity).abs().amax() <= _LARGEST_RESIDUAL):
        raise UserError("edge_weight: the weights of a graph differ too much for its effective resistances in float64")
    diagonal = inverse.diagonal(dim1=1, dim2=2)
    resistance = diagonal[:, :, None] + diagonal[:, None, :] - inverse - inverse.transpose(1, 2)
    resistance = resistance.clamp(min=0.0) * together / unit
    if bool((resistance > _LARGEST).any()):
        raise UserError("edge_weight: the weights of a graph are too small: its effective resistances exceed float32")
    return resistance, together > identity


def _connected_parts(adjacency: Tensor) -> Tensor:
    """``[b, n]``: the same number for nodes that a path joins; a number of its own for every row that pads."""
    b, n, _ = adjacency.shape
    graph, i, j = adjacency.nonzero().cpu().numpy().T
    joined = scipy.sparse.coo_array((np.ones(graph.size), (graph * n + i, graph * n + j)), shape=(b * n, b * n))
    _, part = connected_components(joined, directed=False)
    return torch.from_numpy(part).view(b, n).to(adjacency.device)


RESISTANCE = EncodingKind(
    name="resistance",
    title="Effective resistance",
    columns="nearest nodes",
    attribute="resistance_pe",
    equation=r"p_i = \mathrm{sort}(\{\{ R_{ij} \mid j \ne i \}\})_{1, \dots, k}, \quad "
    r"R_{ij} = L^+_{ii} + L^+_{jj} - 2 L^+_{ij}",
    compute=resistance_encoding,
)

RESISTANCE_PAIRS = EncodingKind(
    name="resistance-pairs",
    title="Effective resistance of pairs",
    columns="resistance",
    attribute="edge_resistance_pe",
    equation=r"p_{ij} = R_{ij} = L^+_{ii} + L^+_{jj} - 2 L^+_{ij}",
    compute=resistance_pair_encoding,
    level="pair",
    width=1,
)
