"""The order in which a graph is gone through in blocks, the blocks, and where edge features wait between two layers."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lspe.nn.topology import Topology

if TYPE_CHECKING:
    from torch_geometric.data import Data

BYTES_IN_MEMORY = 2**30
"""Edge features up to this size wait in memory; larger ones in a temporary file."""


@dataclass(frozen=True)
class Block:
    """A graph of some nodes, the edges into them, and behind these nodes the others where the edges begin.

    Shapes:
        - **nodes:** ``[n]``, places in the order
        - **edges:** ``[m]``, edges of the data; the first of them is edge ``begin`` of the order
        - **edge_index:** ``[2, m]``, in the block's own numbers
    """

    nodes: Tensor
    edges: Tensor
    begin: int
    edge_index: Tensor

    def edges_of(self, data: Data) -> Data:
        """The edges of the block with their features."""
        from torch_geometric.data import Data  # takes long to load

        names = [key for key in data.to_dict() if key != "edge_index" and data.is_edge_attr(key)]
        columns = {key: data[key][self.edges] for key in names}
        return Data(edge_index=self.edge_index, num_nodes=len(self.nodes), **columns)


@dataclass(frozen=True)
class BlockOrder:
    """The nodes that count: those asked for first, then what these depend on, step by step.

    Behind layer l the first ``reach[l]`` nodes are needed, and of the edges those into the first ``reach[l + 1]``: what
    a layer needs is always the beginning of the same order.

    Shapes:
        - **nodes:** ``[n]``, nodes of the data
        - **reach:** L + 1 numbers, from all that enter the first layer to those asked for
        - **edges:** ``[m]``, edges of the data by the place of their target
        - **source:** ``[m]``, the place where each of them begins
        - **begin:** ``[reach[1] + 1]``, where the edges into each node begin
    """

    num_nodes: int
    nodes: Tensor
    reach: list[int]
    edges: Tensor
    source: Tensor
    begin: Tensor

    @classmethod
    def of(cls, data: Data, targets: Tensor | None, layers: int) -> BlockOrder:
        """The order for so many layers; without ``targets`` all nodes are asked for, in their own order."""
        source, target = data.edge_index
        num_nodes = int(data.num_nodes)
        start = torch.zeros(num_nodes + 1, dtype=torch.long, device=target.device)
        torch.cumsum(torch.bincount(target, minlength=num_nodes), 0, out=start[1:])
        by_target = None if bool((target.diff() >= 0).all()) else torch.argsort(target, stable=True)

        def edges_into(nodes: Tensor) -> Tensor:
            places = _ranges(start[nodes], start[nodes + 1])
            return places if by_target is None else by_target[places]

        steps = [torch.arange(num_nodes, device=target.device) if targets is None else targets.nonzero().flatten()]
        seen = torch.ones_like(start[1:], dtype=torch.bool) if targets is None else targets.clone()
        for _ in range(layers):
            new = torch.zeros_like(seen)
            if targets is not None:
                new[source[edges_into(steps[-1])]] = True
            steps.append((new & ~seen).nonzero().flatten())
            seen |= new
        nodes = torch.cat(steps)
        reach = torch.tensor([len(step) for step in steps]).cumsum(0).flip(0).tolist()
        with_edges = nodes[: reach[1]]
        edges = edges_into(with_edges)
        place = torch.full_like(start, -1)
        place[nodes] = torch.arange(len(nodes), device=nodes.device)
        begin = torch.cat([start[:1], (start[with_edges + 1] - start[with_edges]).cumsum(0)])
        return cls(num_nodes, nodes, reach, edges, place[source[edges]], begin)

    @property
    def edges_needed(self) -> list[int]:
        """Behind each layer, how many edges the next one needs."""
        return [int(self.begin[nodes]) for nodes in self.reach[2:]] + [0]

    def cuts(self, nodes: int, at_once: int) -> list[int]:
        """Where blocks of the first ``nodes`` begin, each with about ``at_once`` nodes and edges; at last their end."""
        before = self.begin[: nodes + 1] + torch.arange(nodes + 1, device=self.begin.device)
        wanted = torch.arange(0, int(before[-1]), at_once, device=before.device)
        cuts = torch.searchsorted(before, wanted).unique()
        return [*cuts[cuts < nodes].tolist(), nodes]

    def block(self, first: int, last: int) -> Block:
        """The graph that gives a layer's result for the nodes at the places ``first`` to ``last``."""
        rows = slice(int(self.begin[first]), int(self.begin[last]))
        source = self.source[rows]
        is_other = torch.zeros(len(self.nodes), dtype=torch.bool, device=source.device)
        is_other[source] = True
        is_other[first:last] = False
        own = torch.arange(first, last, device=source.device)
        nodes = torch.cat([own, is_other.nonzero().flatten()])
        number = torch.empty_like(self.nodes)
        number[nodes] = torch.arange(len(nodes), device=nodes.device)
        target = torch.repeat_interleave(own - first, self.begin[first : last + 1].diff())
        return Block(nodes, self.edges[rows], rows.start, torch.stack([number[source], target]))

    def parts_of_nodes(self, data: Data, at_once: int) -> Iterator[Data]:
        """The nodes with their features and without edges, some at a time; a single part where there are no nodes."""
        from torch_geometric.data import Data

        names = [key for key in data.to_dict() if key != "batch" and data.is_node_attr(key)]
        for first in range(0, max(len(self.nodes), 1), at_once):
            nodes = self.nodes[first : first + at_once]
            no_edges = data.edge_index[:, :0]
            yield Data(edge_index=no_edges, num_nodes=len(nodes), **{key: data[key][nodes] for key in names})

    def asked_for(self, rows: Tensor | None) -> Tensor | None:
        """Of rows in this order those that are asked for."""
        return None if rows is None else rows[: self.reach[-1]]

    def without_edges(self, data: Data) -> Topology:
        """The nodes asked for; in their graphs, where these are all nodes."""
        batch = getattr(data, "batch", None) if self.reach[-1] == self.num_nodes else None
        graphs = None if batch is None else getattr(data, "num_graphs", None)
        return Topology(data.edge_index[:, :0], self.reach[-1], batch, num_graphs=graphs)

    def spread(self, rows: Tensor) -> Tensor:
        """Rows of the nodes asked for, at their places among all nodes; zero elsewhere."""
        if self.reach[-1] == self.num_nodes:
            return rows
        return rows.new_zeros(self.num_nodes, rows.size(1)).index_copy_(0, self.nodes[: self.reach[-1]], rows)


class Rows:
    """Rows like those of an example, written and read in stretches: in memory, or in a file where they are many."""

    def __init__(self, count: int, like: Tensor) -> None:
        self.like = like[:0]
        self._memory: Tensor | None = None
        if count * like.size(1) * like.element_size() <= BYTES_IN_MEMORY:
            self._memory = like.new_empty(count, like.size(1))
        else:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
            weakref.finalize(self, self._file.close)  # and with that it is deleted

    def write(self, begin: int, rows: Tensor) -> None:
        """Put rows where they belong, the first at ``begin``."""
        if self._memory is not None:
            self._memory[begin : begin + len(rows)] = rows
            return
        self._file.seek(begin * rows.size(1) * rows.element_size())
        self._file.write(rows.contiguous().cpu().numpy().data)

    def read(self, begin: int, end: int) -> Tensor:
        """The rows from ``begin`` to ``end``."""
        if self._memory is not None:
            return self._memory[begin:end]
        rows = torch.empty(end - begin, self.like.size(1), dtype=self.like.dtype)
        self._file.seek(begin * rows.size(1) * rows.element_size())
        self._file.readinto(rows.numpy().data)
        return rows.to(self.like.device)


def _ranges(begin: Tensor, end: Tensor) -> Tensor:
    """``begin[0], …, end[0] - 1, begin[1], …``."""
    counts = end - begin
    offset = begin - (counts.cumsum(0) - counts)
    return torch.repeat_interleave(offset, counts) + torch.arange(int(counts.sum()), device=begin.device)
