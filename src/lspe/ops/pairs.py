"""All pairs of nodes of each graph of a batch, in a padded layout."""

from functools import cached_property

import torch
from torch import Tensor

from lspe.ops.edges import Edges

MOST_GRAPHS_PER_NODE = 1000
"""Graphs without nodes are no mistake, but so many are: a graph's number was spoiled, and memory is taken for all."""


class Pairs:
    """Pairs of nodes of one graph, and which of them ``edges`` lists.

    Args:
        edges: the listed pairs.
        batch: ``[N]``, ascending: the graph of each node.
        num_graphs: B.
        real: ``[E]`` bool. ``False`` marks a listed pair that is *not* an edge of the graph. Without it all are.

    """

    def __init__(self, edges: Edges, batch: Tensor, num_graphs: int, real: Tensor | None = None) -> None:
        self.edges = edges
        self.batch = batch
        self.num_graphs = num_graphs
        self.real = real
        self._are_checked = False

    def check_edges(self) -> None:
        """Every edge joins nodes of one graph. A GPU is not asked: its answer would have to be waited for."""
        if self._are_checked or self.batch.device.type != "cpu" or torch.compiler.is_compiling():
            return
        source, target = self.edges.edge_index
        wrong = (self.batch[source] != self.batch[target]).nonzero()
        if len(wrong):
            edge = int(wrong[0])
            ends = f"{int(source[edge])} → {int(target[edge])}"
            raise ValueError(f"edge {edge} ({ends}) joins two graphs: edge_index and batch do not fit")
        self._are_checked = True

    @cached_property
    def graph_start(self) -> Tensor:
        """``[B + 1]``: graph b has the nodes ``graph_start[b]`` to ``graph_start[b + 1]``."""
        return torch.searchsorted(self.batch, torch.arange(self.num_graphs + 1, device=self.batch.device))

    @cached_property
    def graph_sizes(self) -> Tensor:
        """``[B]``: number of nodes of each graph."""
        return self.graph_start.diff()

    @cached_property
    def max_nodes(self) -> int:
        return int(self.graph_sizes.max()) if self.num_graphs else 0

    @cached_property
    def position_in_graph(self) -> Tensor:
        """``[N]``: the number of a node inside its graph."""
        return torch.arange(self.batch.numel(), device=self.batch.device) - self.graph_start[self.batch]

    @cached_property
    def _slot(self) -> Tensor:
        """``[N]``: row of a node in the padded layout ``[B · n_max]``."""
        return self.batch * self.max_nodes + self.position_in_graph

    def pad(self, x: Tensor) -> Tensor:
        """``[N, ...]`` → ``[B, n_max, ...]``, zeros in the empty places."""
        rows = self.num_graphs * self.max_nodes
        padded = x.new_zeros(rows, *x.shape[1:]).index_copy(0, self._slot, x)
        return padded.view(self.num_graphs, self.max_nodes, *x.shape[1:])

    def unpad(self, x: Tensor) -> Tensor:
        """``[B, n_max, ...]`` → ``[N, ...]``."""
        return x.flatten(0, 1).index_select(0, self._slot)

    def pair_slot(self, edge_index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Graph, target and source number of each pair, to index ``[B, n_max (target), n_max (source)]``."""
        source, target = edge_index
        return self.batch[target], self.position_in_graph[target], self.position_in_graph[source]

    @cached_property
    def unlisted(self) -> Tensor:
        """``[B, n_max, n_max]`` bool: two different nodes of one graph that the edges do not join."""
        filled = torch.arange(self.max_nodes, device=self.batch.device) < self.graph_sizes.unsqueeze(-1)
        pairs = filled.unsqueeze(2) & filled.unsqueeze(1)
        pairs.diagonal(dim1=1, dim2=2).fill_(False)
        pairs[self.pair_slot(self.edges.edge_index)] = False
        return pairs

    @cached_property
    def unlisted_index(self) -> Tensor:
        """``[2, P]``, source and target: the pairs of :attr:`unlisted`, in its order."""
        graph, target, source = self.unlisted.nonzero().unbind(1)
        first = self.graph_start[graph]
        return torch.stack([first + source, first + target])
