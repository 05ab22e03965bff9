"""What the encodings share: checked input, small graphs as batches of dense matrices, large ones as sparse.

Every result depends on its own graph alone, to the last bit. Matrix products and eigen-solvers round
differently at differently aligned addresses, so a dense matrix is padded to a multiple of four rows, which
puts each matrix of a batch on a 64-byte boundary. The padded size is a function of the graph's own size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.devices import home_of_float64
from lspe.ops.fused.small_graphs import small_graphs
from lspe.ops.pairs import MOST_GRAPHS_PER_NODE

if TYPE_CHECKING:
    import scipy.sparse

LARGEST_DENSE = 512
"""Nodes of a graph whose encodings are computed with dense matrices; larger ones are sparse."""

_ALIGN = 4
_CHUNK_ELEMENTS = 2**15  # what the fast caches hold
_MAX_WEIGHT = 1e300  # the weights of a node can still be added up in float64


Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Graphs:
    r"""One graph or a batch of graphs, checked, with the edges of each graph side by side.

    Shapes:
        - **edge_index:** :math:`[2, E]`, int64
        - **edge_weight:** :math:`[E]`, float64, or ``None`` for ones
        - **node_start:** :math:`[B + 1]`, graph b has the nodes ``node_start[b]`` to ``node_start[b + 1]``
        - **edge_start:** :math:`[B + 1]`, the same for edges
    """

    edge_index: Tensor
    edge_weight: Tensor | None
    node_start: Positions
    edge_start: Positions

    @property
    def sizes(self) -> Positions:
        return np.diff(self.node_start)

    @property
    def num_graphs(self) -> int:
        return self.node_start.size - 1

    @property
    def num_nodes(self) -> int:
        return int(self.node_start[-1])

    def nodes_of(self, graph: int) -> slice:
        return slice(int(self.node_start[graph]), int(self.node_start[graph + 1]))

    def large(self) -> list[int]:
        """The graphs that are too large for dense matrices."""
        return [int(graph) for graph in np.flatnonzero(~is_small(self.sizes))]

    def sparse_adjacency(self, graph: int) -> scipy.sparse.csr_array:
        """The adjacency matrix of one graph; parallel edges are added up, edges of weight zero left out."""
        from scipy.sparse import coo_array  # takes long to load, and small graphs do without

        edges = slice(int(self.edge_start[graph]), int(self.edge_start[graph + 1]))
        source, target = self.edge_index[:, edges].cpu().numpy() - self.node_start[graph]
        weight = np.ones(source.size) if self.edge_weight is None else self.edge_weight[edges].cpu().numpy()
        size = int(self.sizes[graph])
        adjacency = coo_array((weight, (source, target)), shape=(size, size)).tocsr()
        adjacency.eliminate_zeros()
        return adjacency

    def small(self) -> dict[str, Tensor | int | None]:
        """The graphs as the operators in C take them, which serve the small ones."""
        return small_graphs(self.edge_index, self.edge_weight, self.node_start, self.edge_start, LARGEST_DENSE)

    def small_chunks(self) -> Iterator[DenseChunk]:
        """The small graphs as dense matrices, graphs of about one size at a time."""
        return self._chunks_of(is_small(self.sizes))

    def dense_chunks(self) -> Iterator[DenseChunk]:
        """All graphs as dense matrices, graphs of about one size at a time."""
        return self._chunks_of(np.ones(self.num_graphs, dtype=bool))

    def _chunks_of(self, graphs: NDArray[np.bool_]) -> Iterator[DenseChunk]:
        sizes = self.sizes
        chosen = np.flatnonzero(graphs & (sizes > 0))
        padded = (sizes[chosen] + (_ALIGN - 1)) // _ALIGN * _ALIGN
        for n in np.unique(padded).tolist():
            same_size = chosen[padded == n]
            at_once = max(1, _CHUNK_ELEMENTS // n**2)
            for first in range(0, same_size.size, at_once):
                yield self._dense_chunk(same_size[first : first + at_once], n)

    def _dense_chunk(self, graphs: Positions, n: int) -> DenseChunk:
        num_edges = np.diff(self.edge_start)[graphs]
        slot = np.arange(graphs.size).repeat(num_edges)
        first = num_edges.cumsum() - num_edges
        edges = (self.edge_start[graphs] - first)[slot] + np.arange(slot.size)
        # edge i → j of graph b belongs at (b n + i) n + j
        origin = (slot * n - self.node_start[graphs][slot]) * n - self.node_start[graphs][slot]

        device = self.edge_index.device
        chosen = torch.from_numpy(edges).to(device)
        source, target = self.edge_index[:, chosen].unbind()
        adjacency = torch.zeros(graphs.size, n, n, dtype=torch.float64, device=device)
        weight = adjacency.new_ones(slot.size) if self.edge_weight is None else self.edge_weight[chosen]
        adjacency.view(-1).index_add_(0, source * n + target + torch.from_numpy(origin).to(device), weight)
        return DenseChunk(graphs, self.node_start[graphs], self.sizes[graphs], adjacency)


@dataclass(frozen=True)
class DenseChunk:
    r"""Some graphs of about one size.

    Shapes:
        - **graphs**, **node_start**, **sizes:** :math:`[b]`
        - **adjacency:** :math:`[b, n, n]`, float64, zero outside each graph
    """

    graphs: Positions
    node_start: Positions
    sizes: Positions
    adjacency: Tensor

    @property
    def is_node(self) -> Tensor:
        """Which of the n rows belong to a node, shape [b, n]."""
        rows = np.arange(self.adjacency.size(1))
        return torch.from_numpy(rows < self.sizes[:, None]).to(self.adjacency.device)

    def write(self, values: Tensor, out: Tensor) -> None:
        """Write the rows of `values` [b, n, c] that belong to nodes to their places in `out` [N, c]."""
        rows = np.arange(values.size(1))
        slot, row = (rows < self.sizes[:, None]).nonzero()
        nodes = torch.from_numpy(self.node_start[slot] + row).to(out.device)
        out[nodes] = values[torch.from_numpy(slot), torch.from_numpy(row)].to(out.dtype).to(out.device)


def normalised_adjacency(adjacency: Tensor) -> Tensor:
    r""":math:`S = D^{-1/2} A D^{-1/2}` of the graphs made undirected, zero in the rows of isolated nodes.

    An edge in one direction counts as one in both; of two different weights the larger one counts.

    Shapes:
        - **adjacency:** :math:`[b, n, n]`
        - **output:** :math:`[b, n, n]`
    """
    adjacency = torch.maximum(adjacency, adjacency.transpose(1, 2))
    degree = adjacency.sum(2)
    scale = torch.where(degree > 0, degree.rsqrt(), 0.0)
    return adjacency * scale[:, :, None] * scale[:, None, :]


def normalised_sparse_adjacency(adjacency: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    r""":math:`S = D^{-1/2} A D^{-1/2}` of one undirected graph."""
    from scipy.sparse import csr_array

    scale = np.sqrt(adjacency.sum(1))
    edges = adjacency.tocoo()
    weight = edges.data / scale[edges.row] / scale[edges.col]
    return csr_array((weight, edges.coords), shape=edges.shape)


def is_small(nodes: Any) -> Any:
    """Whether dense matrices serve graphs of so many nodes best; a number or an array."""
    return nodes <= LARGEST_DENSE


def check_count(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")


def _numbers(what: Tensor) -> bool:
    """Whether it can number nodes or graphs."""
    return not (what.is_floating_point() or what.is_complex() or what.dtype is torch.bool)


def check_graphs(
    edge_index: Tensor,
    num_nodes: int | None,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
) -> Graphs:
    r"""Check one graph, or a batch of graphs in PyG's layout, and put it in order, where float64 is to be had.

    Shapes:
        - **edge_index:** :math:`[2, E]`
        - **edge_weight:** :math:`[E]`
        - **batch:** :math:`[N]`, the graph of each node, ascending
    """
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or not _numbers(edge_index):
        raise ValueError(
            f"edge_index must be an integer tensor of shape [2, number of edges], "
            f"got {edge_index.dtype} of shape {list(edge_index.shape)}"
        )
    home = home_of_float64(edge_index.device)
    edge_index = edge_index.long().to(home)
    batch = None if batch is None else batch.to(home)
    if batch is not None:
        _check_batch(batch, num_nodes)
        num_nodes = batch.numel()
    elif num_nodes is None:
        raise ValueError("num_nodes is missing: give the number of nodes, or `batch` with one entry a node")
    elif num_nodes < 0:
        raise ValueError(f"num_nodes must not be negative, got {num_nodes}")
    _check_ends(edge_index, num_nodes)
    if edge_weight is not None:
        edge_weight = _checked_weight(edge_weight, edge_index)

    if batch is None:
        return Graphs(edge_index, edge_weight, np.array([0, num_nodes]), np.array([0, edge_index.size(1)]))
    graph_of_edge = _graph_of_edge(edge_index, batch)
    if (graph_of_edge.diff() < 0).any():
        graph_of_edge, order = graph_of_edge.sort(stable=True)
        edge_index = edge_index[:, order]
        edge_weight = None if edge_weight is None else edge_weight[order]
    num_graphs = int(batch[-1]) + 1 if batch.numel() else 0
    return Graphs(edge_index, edge_weight, _starts(batch.long(), num_graphs), _starts(graph_of_edge, num_graphs))


def _starts(graph: Tensor, num_graphs: int) -> Positions:
    """Where the entries of each graph start, and after them the end."""
    counts = torch.bincount(graph, minlength=num_graphs).cpu().numpy()
    return np.concatenate([[0], counts.cumsum()])


def _check_batch(batch: Tensor, num_nodes: int | None) -> None:
    if batch.dim() != 1 or not _numbers(batch):
        raise ValueError(
            f"batch must be an integer tensor with one entry a node, got {batch.dtype} of shape {list(batch.shape)}"
        )
    if num_nodes is not None and num_nodes != batch.numel():
        raise ValueError(f"num_nodes is {num_nodes} but batch has {batch.numel()} entries: it needs one per node")
    if batch.numel() and int(batch[0]) < 0:
        raise ValueError(f"batch must not be negative, got {int(batch[0])} for node 0")
    if batch.numel() and int(batch.max()) > MOST_GRAPHS_PER_NODE * batch.numel():
        raise ValueError(f"batch goes up to graph {int(batch.max())}, but there are only {batch.numel()} nodes")
    falls = (batch.diff() < 0).nonzero()
    if falls.numel():
        node = int(falls[0]) + 1
        raise ValueError(
            f"batch must be sorted so that the nodes of a graph stand together: node {node} belongs to graph "
            f"{int(batch[node])} but follows a node of graph {int(batch[node - 1])}"
        )


def _check_ends(edge_index: Tensor, num_nodes: int) -> None:
    if edge_index.numel() == 0:
        return
    lowest, highest = edge_index.aminmax()
    if lowest < 0 or highest >= num_nodes:
        edge = int(((edge_index < 0) | (edge_index >= num_nodes)).any(0).nonzero()[0])
        source, target = edge_index[:, edge].tolist()
        raise ValueError(
            f"edge {edge} ({source} → {target}) points outside the graph: its {num_nodes} nodes are numbered from 0"
        )


def _checked_weight(edge_weight: Tensor, edge_index: Tensor) -> Tensor:
    if list(edge_weight.shape) != [edge_index.size(1)]:
        raise ValueError(
            f"edge_weight must have one entry for each of the {edge_index.size(1)} edges, "
            f"got shape {list(edge_weight.shape)}"
        )
    weight = edge_weight.detach().to(edge_index.device).double()
    wrong = (~((weight >= 0) & (weight <= _MAX_WEIGHT))).nonzero()
    if wrong.numel():
        edge = int(wrong[0])
        source, target = edge_index[:, edge].tolist()
        raise ValueError(
            f"edge_weight[{edge}] of edge {source} → {target} is {float(weight[edge])}: "
            f"weights of a random walk must be finite (at most {_MAX_WEIGHT:.0e}) and not negative"
        )
    return weight


def _graph_of_edge(edge_index: Tensor, batch: Tensor) -> Tensor:
    graph_of_source, graph_of_target = batch.long()[edge_index].unbind()
    across = (graph_of_source != graph_of_target).nonzero()
    if across.numel():
        edge = int(across[0])
        source, target = edge_index[:, edge].tolist()
        raise ValueError(
            f"edge {edge} ({source} → {target}) joins graph {int(graph_of_source[edge])} with graph "
            f"{int(graph_of_target[edge])}: edge_index and batch do not belong together"
        )
    return graph_of_source
