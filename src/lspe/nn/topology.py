"""The edges of a batch of graphs, and what the layers derive from them once per forward pass."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lspe.encodings import diffusion_kernel
from lspe.ops import Edges, Pairs
from lspe.ops.pairs import MOST_GRAPHS_PER_NODE

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Topology:
    r"""Who is joined to whom in a batch of graphs.

    Layers take a ``Topology`` instead of bare indices, so that degrees, graph sizes, the padded layout of
    full attention and the diffusion kernel are computed once for all layers.

    Args:
        edge_index: ``[2, E]``; a message goes from the source ``edge_index[0]`` to the target ``edge_index[1]``.
        num_nodes: N, the number of nodes of all graphs together.
        batch: ``[N]``, ascending: the graph of each node. Without it all nodes are one graph.
        num_graphs: B; needed only where graphs at the end of the batch have no node.
        real: ``[E]`` bool. ``False`` marks a listed pair that is *not* an edge of the graph: full attention
            treats it as an added edge with an embedding of its own; nothing else sees it. Without it all are real.
        kernel: ``[B, n_max, n_max]``; GraphiT's kernel where it was computed before.
        added_pair: ``[edge_dim]``: what all pairs of nodes without an edge share in full attention, as a network's
            embedder gives it (:meth:`with_added_pair`); or ``[P, edge_dim]``, one for each of these pairs in the order
            of ``pairs.unlisted_index``. Other layers do without.

    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        batch: Tensor | None = None,
        *,
        num_graphs: int | None = None,
        real: Tensor | None = None,
        kernel: Tensor | None = None,
        added_pair: Tensor | None = None,
    ) -> None:
        self.edges = Edges(edge_index, num_nodes)
        self.edge_index = self.edges.edge_index
        self.num_nodes = num_nodes
        self.batch = self.edge_index.new_zeros(num_nodes)
        if batch is not None:
            self.batch = _checked_batch(batch, num_nodes, num_graphs)
        elif num_nodes and num_graphs is not None and num_graphs < 1:
            raise ValueError(f"there are {num_nodes} nodes, but {num_graphs} graphs")
        last = int(self.batch[-1]) + 1 if num_nodes and num_graphs is None else 0
        self.num_graphs = last if num_graphs is None else num_graphs
        if real is not None and (real.dtype is not torch.bool or real.shape != self.edge_index.shape[1:]):
            raise ValueError(f"real is {list(real.shape)} of {real.dtype}, but says True or False of each edge")
        self.real = real
        self._kernel = kernel
        self._added_pair: Tensor | Callable[[], Tensor] | None = added_pair
        self._known: dict[Hashable, Tensor] = {}

    @classmethod
    def of(cls, data: Data) -> Topology:
        """The topology of a PyG ``Data`` or ``Batch``; a ``real_edge`` attribute becomes ``real``."""
        num_graphs = getattr(data, "num_graphs", None)
        return cls(
            data.edge_index,
            int(data.num_nodes),
            getattr(data, "batch", None),
            num_graphs=num_graphs,
            real=getattr(data, "real_edge", None),
        )

    @property
    def source(self) -> Tensor:
        """``[E]``, j of the edge j → i."""
        return self.edge_index[0]

    @property
    def target(self) -> Tensor:
        """``[E]``, i of the edge j → i."""
        return self.edge_index[1]

    @cached_property
    def real_edge_index(self) -> Tensor:
        """``[2, E']``: the edges of the original graph only."""
        return self.edge_index if self.real is None else self.edge_index[:, self.real]

    def with_added_pair(self, added_pair: Tensor | Callable[[], Tensor]) -> Topology:
        """The same graphs, with the embedding of the pairs which ``edge_index`` does not list: one, or one each.

        A function is called when a layer asks for it, with gradients as here: the layer may be in a checkpoint.
        """
        other = copy.copy(self)
        other._added_pair = (
            added_pair
            if isinstance(added_pair, Tensor)
            else torch.set_grad_enabled(torch.is_grad_enabled())(added_pair)
        )
        return other

    @property
    def added_pair(self) -> Tensor:
        """``[edge_dim]`` or ``[P, edge_dim]``: what two nodes without an edge have in full attention."""
        if self._added_pair is None:
            raise ValueError(
                "full attention needs an embedding for pairs of nodes without an edge: Topology(..., added_pair=...)"
            )
        if not isinstance(self._added_pair, Tensor):
            self._added_pair = self._added_pair()
        return self._added_pair

    @property
    def in_degree(self) -> Tensor:
        """``[N]``: number of edges that end in a node."""
        return self.edges.in_degree

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs of nodes of a graph, as the operators take them."""
        return Pairs(self.edges, self.batch, self.num_graphs, self.real)

    @property
    def graph_sizes(self) -> Tensor:
        """``[B]``: number of nodes of each graph."""
        return self.pairs.graph_sizes

    @property
    def max_nodes(self) -> int:
        return self.pairs.max_nodes

    @property
    def unlisted_pairs(self) -> Tensor:
        """``[B, n_max, n_max]`` bool: two different nodes of one graph that ``edge_index`` does not join."""
        return self.pairs.unlisted

    def pair_slot(self, edge_index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Graph, target and source number of each pair, to index ``[B, n_max (target), n_max (source)]``."""
        return self.pairs.pair_slot(edge_index)

    def inverse_sqrt_size(self, dtype: torch.dtype) -> Tensor:
        r"""``[N, 1]``: :math:`1 / \sqrt{n}` of each node's graph."""

        def compute() -> Tensor:
            # in float64 where the device has it
            sizes = self.graph_sizes.to(dtype if self.batch.device.type == "mps" else torch.float64)
            return sizes.rsqrt().to(dtype).index_select(0, self.batch).unsqueeze(-1)

        return self.once(("size", dtype), compute)

    def once(self, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """What ``compute`` makes of the graphs alone, for all layers that ask for it under this name."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def size_norm(self, x: Tensor) -> Tensor:
        r"""Divide each node's row by :math:`\sqrt{n}` of its graph."""
        return x * self.inverse_sqrt_size(x.dtype)

    def diffusion_kernel(self, beta: float, steps: int, dtype: torch.dtype) -> Tensor:
        r"""``[B, n_max, n_max]``: :math:`(I - \beta L)^{steps}` of the original graph, computed once."""
        if self._kernel is not None:
            return self._kernel.to(dtype)

        def compute() -> Tensor:
            edge_index, batch = self.real_edge_index, self.batch
            if batch.device.type == "mps":  # it is computed in float64
                edge_index, batch = edge_index.cpu(), batch.cpu()
            with torch._C._DisableFuncTorch():  # the graphs are no part of what a transform looks at
                kernel = diffusion_kernel(edge_index, self.num_nodes, beta=beta, steps=steps, batch=batch, dtype=dtype)
            return kernel.to(self.batch.device)

        return self.once(("kernel", beta, steps, dtype), compute)


def _checked_batch(batch: Tensor, num_nodes: int, num_graphs: int | None) -> Tensor:
    """``batch`` as int64; an error where it is not one graph per node, ascending from 0 on."""
    if batch.shape != (num_nodes,):
        raise ValueError(f"batch is {list(batch.shape)}, but there is one graph number for each of {num_nodes} nodes")
    if batch.is_floating_point() or batch.is_complex() or batch.dtype is torch.bool:
        raise TypeError(f"batch is of {batch.dtype}, but graphs are numbered by integers: use torch.long")
    batch = batch.long().contiguous()
    if type(batch) is not Tensor or batch.device.type != "cpu" or torch.compiler.is_compiling() or not num_nodes:
        return batch
    if batch[0] < 0 or (batch.diff() < 0).any():
        raise ValueError("batch has to begin at 0 or later and to ascend: the nodes of a graph stand together")
    if num_graphs is None and batch[-1] > MOST_GRAPHS_PER_NODE * num_nodes:
        raise ValueError(f"batch goes up to graph {int(batch[-1])}, but there are only {num_nodes} nodes")
    if num_graphs is not None and batch[-1] >= num_graphs:
        raise ValueError(f"batch goes up to graph {int(batch[-1])}, but there are {num_graphs} graphs")
    return batch
