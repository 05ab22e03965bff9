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
    compute = check_encoding(kind, k).compute
    return compute(edge_index, num_nodes, k, edge_weight=edge_weight, batch=batch, dtype=dtype)
