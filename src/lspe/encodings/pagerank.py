"""Personalised PageRank encoding: how often a walk that stops at random stops where it began."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lspe.encodings.dense import encode_nodes, encode_pairs, walk_probabilities
from lspe.encodings.graphs import DenseChunk
from lspe.encodings.kinds import EncodingKind


def pagerank_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The diagonal of personalised PageRank for k restart probabilities, of one graph or of a batch of graphs

    .. math::
        p_{im} = \big(\alpha_m (\textrm{I}_n - (1 - \alpha_m) \textrm{RW})^{-1}\big)_{ii}, \qquad
        \alpha_m = \frac{1}{m + 1}, \qquad m = 1, \dots, k

    A walk stops before each step with the probability α; row i says where the walk from i stops. With
    :math:`\alpha_m` it takes m steps on average: RWPE takes exactly m, the heat kernel m on average as well, with
    another spread. PageRank's usual α of 0.15 lies between columns 5 and 6.

    The walk is that of :func:`~lspe.encodings.random_walk_encoding`: it follows the directions and the weights, and is
    lost at a node that no edge leaves.

    ``k`` is the number of restart probabilities; the result is ``[N, k]``. The other arguments are those of
    :func:`~lspe.encodings.random_walk_encoding`.
    """
    return encode_nodes(_diagonals, edge_index, num_nodes, k, edge_weight=edge_weight, batch=batch, dtype=dtype)


def pagerank_pair_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    pairs: Tensor | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""Personalised PageRank of j as seen from i, for pairs of nodes of one graph or of a batch of graphs

    .. math::
        p_{ijm} = \big(\alpha_m (\textrm{I}_n - (1 - \alpha_m) \textrm{RW})^{-1}\big)_{ij}, \qquad
        \alpha_m = \frac{1}{m + 1}, \qquad m = 1, \dots, k

    Its diagonal is :func:`pagerank_encoding`, whose walk it is.

    ``k`` is the number of restart probabilities; the result is ``[P, k]``. The other arguments are those of
    :func:`~lspe.encodings.encode_pairs`.
    """
    return encode_pairs(
        _matrices, edge_index, num_nodes, k, pairs=pairs, edge_weight=edge_weight, batch=batch, dtype=dtype
    )  # fmt: skip


def _diagonals(chunk: DenseChunk, k: int) -> Tensor:
    """``[b, n, k]``."""
    return torch.stack([matrix.diagonal(dim1=1, dim2=2) for matrix in _matrices(chunk, k)], dim=2)


def _matrices(chunk: DenseChunk, k: int) -> Iterator[Tensor]:
    """``[b, n, n]`` for each α. The matrix that is inverted is diagonally dominant, whatever the graph."""
    walk = walk_probabilities(chunk.adjacency)
    identity = torch.eye(walk.size(1), dtype=walk.dtype, device=walk.device)
    for m in range(1, k + 1):
        alpha = 1 / (m + 1)
        yield alpha * torch.linalg.inv(identity - (1 - alpha) * walk)


PAGERANK = EncodingKind(
    name="ppr",
    title="Personalised PageRank",
    columns="mean lengths of the walk",
    attribute="pagerank_pe",
    equation=r"p_{im} = (\alpha_m (I - (1 - \alpha_m) \mathrm{RW})^{-1})_{ii}, \quad \alpha_m = \frac{1}{m + 1}",
    compute=pagerank_encoding,
)

PAGERANK_PAIRS = EncodingKind(
    name="ppr-pairs",
    title="Personalised PageRank of pairs",
    columns="mean lengths of the walk",
    attribute="edge_pagerank_pe",
    equation=r"p_{ijm} = (\alpha_m (I - (1 - \alpha_m) \mathrm{RW})^{-1})_{ij}, \quad \alpha_m = \frac{1}{m + 1}",
    compute=pagerank_pair_encoding,
    level="pair",
)
