"""What the encodings share that are computed from dense matrices of one graph each."""

from collections.abc import Callable, Iterator

import numpy as np
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


@torch.no_grad()
def encode_pairs(
    of_chunk: Callable[[DenseChunk, int], Iterator[Tensor]],
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    pairs: Tensor | None,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    dtype: torch.dtype,
) -> Tensor:
    """The entries of ``of_chunk`` at some pairs of nodes, ``[P, k]``; at the edges where `pairs` are left out.

    ``of_chunk`` makes of some graphs of about one size k matrices ``[b, n, n]``, one after the other.
    """
    check_count(k, "k")
    graphs = check_graphs(edge_index, num_nodes, edge_weight=edge_weight, batch=batch)
    check_size(int(graphs.sizes.max(initial=0)))
    pairs = edge_index if pairs is None else pairs
    check_graphs(pairs, graphs.num_nodes, batch=batch)
    i, j = pairs.long().cpu().numpy()
    graph = np.searchsorted(graphs.node_start, i, side="right") - 1
    order = np.argsort(graph, kind="stable")
    start = np.searchsorted(graph[order], np.arange(graphs.num_graphs + 1))

    entries = torch.zeros(i.size, k, dtype=dtype, device=edge_index.device)
    for chunk in graphs.dense_chunks():
        chosen = np.concatenate([order[start[one] : start[one + 1]] for one in chunk.graphs])
        if not chosen.size:
            continue
        slot = np.searchsorted(chunk.graphs, graph[chosen])
        first = chunk.node_start[slot]
        home = chunk.adjacency.device
        place = tuple(torch.from_numpy(one).to(home) for one in (slot, i[chosen] - first, j[chosen] - first))
        values = torch.stack([matrix[place] for matrix in of_chunk(chunk, k)], dim=1)
        entries[torch.from_numpy(chosen).to(entries.device)] = values.to(dtype).to(entries.device)
    return entries


def all_pairs(num_nodes: int, batch: Tensor | None = None) -> Tensor:
    """``[2, P]``: every two nodes of a graph in both orders, and each node with itself, graph by graph."""
    sizes = np.array([num_nodes]) if batch is None else np.bincount(batch.cpu().numpy())
    first = np.repeat(sizes.cumsum() - sizes, sizes**2)
    place = np.arange(first.size) - np.repeat((sizes**2).cumsum() - sizes**2, sizes**2)
    size = np.repeat(sizes, sizes**2)
    pairs = torch.from_numpy(np.stack([first + place // size, first + place % size]))
    return pairs if batch is None else pairs.to(batch.device)


class TooLargeError(UserError):
    """A graph that an encoding, or a comparison, cannot be computed for."""


def check_size(num_nodes: int) -> None:
    if num_nodes > MOST_NODES:
        raise TooLargeError(
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
