"""One call for every kind of encoding."""

import torch
from torch import Tensor

from lspe.encodings.kinds import EncodingKind, check_encoding


def encode(
    kind: str | EncodingKind,
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The encoding ``kind`` of every node of one graph or of a batch of graphs, ``[N, k]``.

    ``kind`` is ``rwpe``, ``lappe``, … (:data:`~lspe.encodings.KINDS`) or an :class:`~lspe.encodings.EncodingKind`; the
    other arguments are those of :func:`~lspe.encodings.random_walk_encoding`.
    """
    compute = check_encoding(kind, k, "node").compute
    return compute(edge_index, num_nodes, k, edge_weight=edge_weight, batch=batch, dtype=dtype)


def encode_pairs(
    kind: str | EncodingKind,
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    pairs: Tensor | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The encoding ``kind`` of pairs of nodes of one graph or of a batch of graphs, ``[P, k]``.

    ``kind`` is ``rrwp``, … ; ``pairs`` ``[2, P]`` are the pairs i, j, each of one graph: the edges if left out,
    :func:`~lspe.encodings.all_pairs` for all. The other arguments are those of :func:`encode`.
    """
    compute = check_encoding(kind, k, "pair").compute
    return compute(edge_index, num_nodes, k, pairs=pairs, edge_weight=edge_weight, batch=batch, dtype=dtype)
