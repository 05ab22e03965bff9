"""The edges of a batch in the order of their targets and of their sources."""

from functools import cached_property

import torch
from torch import Tensor

from lspe.ops.native import library
from lspe.ops.operator import operator


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
