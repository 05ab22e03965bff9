"""What the encodings share that are computed from dense matrices of one graph each."""

from collections.abc import Callable

import torch
from torch import Tensor

from lspe.encodings.graphs import DenseChunk, check_count, check_graphs
from lspe.errors import UserError

MOST_NODES = 5000
"""Of a graph whose matrices take memory for n² numbers and time for n³."""


@torch.no_grad()
def encode_nodes(
    of_chunk: Callable[[DenseChunk, int], Tensor],
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    dtype: torch.dtype,
) -> Tensor:
    """``of_chunk`` of all graphs: some graphs of about one size → ``[b, n, k]``; all together ``[N, k]``."""
    check_count(k, "k")
    graphs = check_graphs(edge_index, num_nodes, edge_weight=edge_weight, batch=batch)
    check_size(int(graphs.sizes.max(initial=0)))
    encoding = torch.zeros(graphs.num_nodes, k, dtype=dtype, device=edge_index.device)
    for chunk in graphs.dense_chunks():
        chunk.write(of_chunk(chunk, k), encoding)
    return encoding


def check_size(num_nodes: int) -> None:
    if num_nodes > MOST_NODES:
        raise UserError(
            f"a graph has {num_nodes:,} nodes: this encoding is computed from dense matrices, for graphs of up to "
            f"{MOST_NODES:,} nodes. For larger ones use 'rwpe', 'lappe' or 'degree'"
        )


def walk_probabilities(adjacency: Tensor) -> Tensor:
    r""":math:`\textrm{RW}_{ij} = w_{ij} / \sum_j w_{ij}`, zero in the rows of nodes that no edge leaves.

    Shapes:
        - **adjacency**, **output:** :math:`[b, n, n]`
    """
    total = adjacency.sum(2, keepdim=True)
    return torch.where(total > 0, adjacency / total, 0.0)
