"""The edges of a batch in the order of their targets and of their sources."""

from functools import cached_property

import torch
from torch import Tensor

from lspe.ops.fused import order


class Edges:
    """Edges, and where to find those of one node.

    ``start, edge = edges.by_target``: the edges that end in node i are ``edge[start[i]:start[i + 1]]``. ``by_source``
    likewise for the edges that begin in a node. Edges of one node keep their order, so sums over them do too.

    Args:
        edge_index: ``[2, E]`` whole numbers, sources and targets; they become int64.
        num_nodes: N.

    """

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        if edge_index.dim() != 2 or edge_index.size(0) != 2:
            raise ValueError(f"edge_index is {list(edge_index.shape)}, but sources and targets are [2, edges]")
        if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype is torch.bool:
            raise TypeError(f"edge_index is of {edge_index.dtype}, but nodes are numbered by integers: use torch.long")
        self.edge_index = edge_index.long().contiguous()
        self.num_nodes = num_nodes
        _check_range(self.edge_index, num_nodes)

    @property
    def count(self) -> int:
        return self.edge_index.size(1)

    @cached_property
    def in_degree(self) -> Tensor:
        """``[N]``: number of edges that end in a node."""
        return torch.bincount(self.edge_index[1], minlength=self.num_nodes)

    @cached_property
    def by_target(self) -> tuple[Tensor, Tensor]:
        return order.edges_by_end(self.edge_index[1], self.num_nodes)

    @cached_property
    def by_source(self) -> tuple[Tensor, Tensor]:
        return order.edges_by_end(self.edge_index[0], self.num_nodes)

    @cached_property
    def cuts(self) -> Tensor:
        """``[2, pieces + 1]``: where the nodes and the edges of pieces begin that no edge joins; the last may be empty.

        A piece is small enough for the caches to hold what is computed of it. Edges of a piece stand together: where
        they do not, the batch is one piece.
        """
        return order.cuts_of(self.edge_index, self.num_nodes)


def _check_range(edge_index: Tensor, num_nodes: int) -> None:
    """Every end of an edge is a node. A GPU looks by itself, and a recorded graph has no numbers yet."""
    if type(edge_index) is not Tensor or edge_index.device.type != "cpu" or torch.compiler.is_compiling():
        return
    if torch._C._functorch.is_functorch_wrapped_tensor(edge_index) or not edge_index.numel():
        return
    low, high = edge_index.aminmax()
    if low < 0 or high >= num_nodes:
        edge = int(((edge_index < 0) | (edge_index >= num_nodes)).any(0).nonzero()[0])
        source, target = edge_index[:, edge].tolist()
        nodes = f"the nodes are 0 to {num_nodes - 1}" if num_nodes else "there are no nodes"
        raise IndexError(f"edge {edge} goes from {source} to {target}, but {nodes}")
