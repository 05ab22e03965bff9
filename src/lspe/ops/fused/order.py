"""Edges in the order of their ends, and cut into pieces; :class:`lspe.ops.Edges` keeps both."""

import torch
from torch import Tensor

from lspe.ops.fused.library import library_for

_MOST_PIECES = 256
_NODES_PER_PIECE = 128
_ANY = torch.empty(0)
"""Edges have no precision: one library is as good as the other."""


def edges_by_end(end: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """``start`` ``[rows + 1]``, ``edge`` ``[E]``: the edges that end in row r are ``edge[start[r]:start[r + 1]]``."""
    end = end.contiguous()
    start, edge = end.new_empty(rows + 1), torch.empty_like(end)
    wrong = end.new_empty(1)
    library_for(_ANY).call("edges_by_end", end=end, start=start, edge=edge, wrong=wrong)
    if (number := int(wrong)) >= 0:
        raise IndexError(f"edge {number} ends in node {int(end[number])}, but the nodes are 0 to {rows - 1}")
    return start, edge


def cuts_of(edge_index: Tensor, num_nodes: int) -> Tensor:
    """See :attr:`lspe.ops.Edges.cuts`."""
    pairs = -(-num_nodes // (2 * _NODES_PER_PIECE))  # of pieces: two threads have the same to do
    pieces = max(1, min(_MOST_PIECES, 2 * pairs))
    cuts = edge_index.new_empty(2, pieces + 1)
    library_for(_ANY).call(
        "find_cuts",
        nodes=num_nodes,
        pieces=pieces,
        source=edge_index[0],
        target=edge_index[1],
        room=edge_index.new_empty(edge_index.size(1) + 1),
        cuts=cuts,
    )
    return cuts
