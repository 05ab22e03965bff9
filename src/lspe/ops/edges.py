"""The edges of a batch in the order of their targets and of their sources."""

from functools import cached_property

import torch
from torch import Tensor

from lspe.ops.fused.library import library
from lspe.ops.fused.operator import operator

_PIECES = 64
_NODES_A_PIECE = 512


class Edges:
    """Edges, and where to find those of one node.

    ``start, edge = edges.by_target``: the edges that end in node i are ``edge[start[i]:start[i + 1]]``. ``by_source``
    likewise for the edges that begin in a node. Edges of one node keep their order, so sums over them do too.

    Args:
        edge_index: ``[2, E]``, sources and targets.
        num_nodes: N.

    """

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        self.edge_index = edge_index
        self.num_nodes = num_nodes

    @cached_property
    def in_degree(self) -> Tensor:
        """``[N]``: number of edges that end in a node."""
        return torch.bincount(self.edge_index[1], minlength=self.num_nodes)

    @cached_property
    def by_target(self) -> tuple[Tensor, Tensor]:
        return edges_by_end(self.edge_index[1], self.num_nodes)

    @cached_property
    def by_source(self) -> tuple[Tensor, Tensor]:
        return edges_by_end(self.edge_index[0], self.num_nodes)

    @cached_property
    def cuts(self) -> Tensor:
        """``[2, 65]``: where the nodes and the edges of 64 pieces begin that no edge joins; the last may be empty.

        A piece is small enough for the caches to hold what is computed of it. Edges of a piece stand together: where
        they do not, the batch is one piece.
        """
        cuts: Tensor = edges_cuts(self.edge_index.contiguous(), self.num_nodes)
        return cuts


def pieces_at_most(num_nodes: int) -> int:
    """How many pieces that are not empty a batch can be cut into."""
    return min(_PIECES, num_nodes // _NODES_A_PIECE + 1)


def _edges_cuts(edge_index: Tensor, num_nodes: int) -> Tensor:
    native = library()
    assert native is not None
    cuts = _cuts_like(edge_index, num_nodes)
    count = edge_index.size(1)
    at_least = max(_NODES_A_PIECE, -(-num_nodes // _PIECES))
    room = edge_index.new_empty(count + 1)
    native.edges_cuts(count, num_nodes, edge_index, edge_index[1], at_least, _PIECES, room, cuts)
    return cuts


def _cuts_like(edge_index: Tensor, num_nodes: int) -> Tensor:
    return edge_index.new_empty(2, _PIECES + 1)


def _edges_by_end(end: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    native = library()
    assert native is not None
    end = end.contiguous()
    start, edge = _like(end, rows)
    wrong = native.edges_by_end(end.numel(), rows, end, start, edge)
    if wrong >= 0:
        raise IndexError(f"edge {wrong} ends in node {int(end[wrong])}, but the nodes are 0 to {rows - 1}")
    return start, edge


def _like(end: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    return end.new_empty(rows + 1), torch.empty_like(end)


edges_by_end = operator("edges_by_end(Tensor end, SymInt rows) -> (Tensor, Tensor)", _edges_by_end, _like)
"""``start`` ``[rows + 1]``, ``edge`` ``[E]``: the edges that end in row r are ``edge[start[r]:start[r + 1]]``."""
edges_cuts = operator("edges_cuts(Tensor edge_index, SymInt num_nodes) -> Tensor", _edges_cuts, _cuts_like)
