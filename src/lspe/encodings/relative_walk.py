"""Relative random walk encoding (RRWP): how probable it is to go from one node to another in 1, 2, … k steps."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lspe.encodings.dense import encode_pairs, walk_probabilities
from lspe.encodings.graphs import DenseChunk
from lspe.encodings.kinds import EncodingKind


def relative_walk_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    pairs: Tensor | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The relative random walk encoding of pairs of nodes of one graph or of a batch of graphs

    .. math::
        p_{ij} = [\textrm{RW}_{ij}, \textrm{RW}^2_{ij}, \dots, \textrm{RW}^k_{ij}], \qquad
        \textrm{RW}_{ij} = \frac{w_{ij}}{\sum_j w_{ij}}

    Its diagonal is :func:`~lspe.encodings.random_walk_encoding`, whose walk it is. (GRIT, where RRWP comes from, begins
    with one column more: the identity, which is zero for all pairs but a node with itself.)

    ``k`` is the number of steps; the result is ``[P, k]``. The other arguments are those of
    :func:`~lspe.encodings.encode_pairs`.
    """
    return encode_pairs(
        _powers, edge_index, num_nodes, k, pairs=pairs, edge_weight=edge_weight, batch=batch, dtype=dtype
    )  # fmt: skip


def _powers(chunk: DenseChunk, k: int) -> Iterator[Tensor]:
    """RW, …, RW^k, ``[b, n, n]`` each."""
    walk = walk_probabilities(chunk.adjacency)
    power = walk
    for step in range(k):
        if step:
            power = power @ walk
        yield power


RRWP = EncodingKind(
    name="rrwp",
    title="Relative random walk",
    columns="steps of the walk",
    attribute="edge_relative_walk_pe",
    equation=r"p_{ij} = [\mathrm{RW}_{ij}, \mathrm{RW}^2_{ij}, \dots, \mathrm{RW}^k_{ij}]",
    compute=relative_walk_encoding,
    level="pair",
)
