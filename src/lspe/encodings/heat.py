"""Heat kernel encoding: how much of the heat that starts at a node is there after a while."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lspe.encodings.dense import encode_nodes, encode_pairs
from lspe.encodings.graphs import DenseChunk, normalised_adjacency
from lspe.encodings.kinds import EncodingKind


def heat_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The diagonal of the heat kernel at the times 1, 2, …, k, of one graph or of a batch of graphs

    .. math::
        p_{it} = (e^{-t \Delta})_{ii}, \qquad \Delta = \textrm{I}_n - D^{-1/2} A D^{-1/2}, \qquad t = 1, \dots, k

    It is the probability to be back for a random walk whose number of steps is not t, as that of RWPE, but random with
    the mean t (Poisson's): it does not swing between even and odd steps.

    The graph is made undirected first: an edge in one direction counts as one in both. An isolated node has
    :math:`\Delta_{ii} = 1`.

    ``k`` is the number of times; the result is ``[N, k]``. The other arguments are those of
    :func:`~lspe.encodings.random_walk_encoding`.
    """
    return encode_nodes(_diagonals, edge_index, num_nodes, k, edge_weight=edge_weight, batch=batch, dtype=dtype)


def heat_pair_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    pairs: Tensor | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The heat kernel at the times 1, 2, …, k for pairs of nodes of one graph or of a batch of graphs

    .. math::
        p_{ijt} = (e^{-t \Delta})_{ij}, \qquad \Delta = \textrm{I}_n - D^{-1/2} A D^{-1/2}, \qquad t = 1, \dots, k

    Its diagonal is :func:`heat_encoding`; directions and isolated nodes are as there.

    ``k`` is the number of times; the result is ``[P, k]``. The other arguments are those of
    :func:`~lspe.encodings.encode_pairs`.
    """
    return encode_pairs(
        _kernels, edge_index, num_nodes, k, pairs=pairs, edge_weight=edge_weight, batch=batch, dtype=dtype
    )  # fmt: skip


def _kernels(chunk: DenseChunk, k: int) -> Iterator[Tensor]:
    """``[b, n, n]`` for each time."""
    decay, vectors = _modes(chunk)
    for time in range(1, k + 1):
        yield (vectors * decay.mul(time).exp()[:, None, :]) @ vectors.transpose(1, 2)


def _diagonals(chunk: DenseChunk, k: int) -> Tensor:
    """``[b, n, k]``."""
    decay, vectors = _modes(chunk)
    squares = vectors.square()
    return torch.stack([(squares * decay.mul(time).exp()[:, None, :]).sum(2) for time in range(1, k + 1)], dim=2)


def _modes(chunk: DenseChunk) -> tuple[Tensor, Tensor]:
    """−λ ``[b, n]`` and the eigenvectors ``[b, n, n]`` of the Laplacian."""
    values, vectors = torch.linalg.eigh(normalised_adjacency(chunk.adjacency))
    return (values - 1.0).clamp(max=0.0), vectors


HEAT = EncodingKind(
    name="heat",
    title="Heat kernel",
    columns="times",
    attribute="heat_kernel_pe",
    equation=r"p_{it} = (e^{-t \Delta})_{ii}, \quad \Delta = I - D^{-1/2} A D^{-1/2}",
    compute=heat_encoding,
)

HEAT_PAIRS = EncodingKind(
    name="heat-pairs",
    title="Heat kernel of pairs",
    columns="times",
    attribute="edge_heat_kernel_pe",
    equation=r"p_{ijt} = (e^{-t \Delta})_{ij}, \quad \Delta = I - D^{-1/2} A D^{-1/2}",
    compute=heat_pair_encoding,
    level="pair",
)
