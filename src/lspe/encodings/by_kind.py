"""One call for every kind of encoding."""

import torch
from torch import Tensor

from lspe.encodings.kinds import EncodingKind, check_encoding
from lspe.encodings.laplacian import laplacian_encoding
from lspe.encodings.random_walk import random_walk_encoding


def encode(
    kind: EncodingKind,
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The encoding ``kind`` of every node of one graph or of a batch of graphs, ``[N, k]``.

    ``rwpe`` is :func:`random_walk_encoding`, ``lappe`` the eigenvectors of :func:`laplacian_encoding`; the
    arguments are theirs.
    """
    check_encoding(kind, k)
    if kind == "rwpe":
        return random_walk_encoding(edge_index, num_nodes, k, edge_weight=edge_weight, batch=batch, dtype=dtype)
    return laplacian_encoding(edge_index, num_nodes, k, edge_weight=edge_weight, batch=batch, dtype=dtype).vectors
