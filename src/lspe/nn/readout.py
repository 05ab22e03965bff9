"""From nodes to graphs, edges or pairs, and from a vector to a prediction."""

import itertools
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from lspe.nn.topology import Topology
from lspe.ops import dropout, scatter_max, scatter_sum

Readout = Literal["mean", "sum", "max", "mean+sum", "none", "edge", "link"]

READOUTS: dict[str, Readout] = {"graph": "mean", "node": "none", "edge": "edge", "link": "link"}
"""What gives an output for each target of a level; of graphs there are others."""

NODES_OF_A_MOLECULE = 20
"""What a sum that stands beside a mean is divided by, so that of molecules both are about as large."""


def level_of(kind: Readout) -> str:
    """What a readout gives an output for."""
    return next((level for level, readout in READOUTS.items() if readout == kind), "graph")


def width_of(kind: Readout, dim: int, edge_dim: int) -> int:
    """Of what the head is given, where nodes have ``dim`` and edges ``edge_dim`` numbers."""
    return {"mean+sum": 2 * dim, "edge": 2 * dim + edge_dim}.get(kind, dim)


def readout(h: Tensor, e: Tensor, graph: Topology, kind: Readout, pairs: Tensor | None = None) -> Tensor:
    r"""What the head is given: a vector per graph, per node, per edge or per pair of nodes.

    - ``mean``, ``sum``, ``max``: of the nodes of each graph, ``[B, d]``;
    - ``mean+sum``: :math:`\big[\frac1n \sum_i h_i, \frac1{20} \sum_i h_i\big]`, ``[B, 2d]``: for targets that
      grow with the graph in part, as the logP of a molecule does;
    - ``none``: the nodes as they are, ``[N, d]``;
    - ``edge``: :math:`[h_j, h_i, e_{ij}]` of each edge from j to i, ``[E, 2d + edge_dim]``;
    - ``link``: :math:`h_i \odot h_j` of each of ``pairs`` ``[2, P]``, in whichever order, ``[P, d]``.
    """
    if kind == "link":
        if pairs is None:
            raise ValueError(
                "the data do not say which pairs of nodes are asked for: give them edge_label_index [2, P], as PyG does"
            )
        return of_pairs(h, pairs)
    if kind == "edge":
        source, target = graph.edge_index
        return torch.cat([h[source], h[target], e], dim=-1)
    return pool(h, graph, kind)


def of_pairs(h: Tensor, pairs: Tensor) -> Tensor:
    r""":math:`h_i \odot h_j` of each pair, the same in both of its orders: ``[N, d]``, ``[2, P]`` → ``[P, d]``."""
    return h[pairs[0]] * h[pairs[1]]


def pool(h: Tensor, graph: Topology, kind: Readout) -> Tensor:
    """``[N, d]`` → ``[B, d]``, of ``mean+sum`` ``[B, 2d]``; ``none`` leaves the nodes as they are."""
    if kind == "none":
        return h
    if kind == "max":
        return scatter_max(h, graph.batch, graph.num_graphs)
    total = scatter_sum(h, graph.batch, graph.num_graphs)
    if kind == "sum":
        return total
    mean = total / graph.graph_sizes.clamp(min=1).unsqueeze(-1).to(h.dtype)
    return mean if kind == "mean" else torch.cat([mean, total / NODES_OF_A_MOLECULE], dim=-1)


def readout_of_mean(mean: Tensor, graph: Topology, kind: Readout) -> Tensor:
    """What :func:`pool` gives of nodes with this mean ``[B, d]``; that of a graph without nodes does not count."""
    size = graph.graph_sizes.unsqueeze(-1).to(mean.dtype)
    if kind == "sum":
        return mean * size
    of_nodes = mean * size.clamp(max=1)
    return of_nodes if kind == "mean" else torch.cat([of_nodes, mean * (size / NODES_OF_A_MOLECULE)], dim=-1)


class Head(nn.Module):
    """An MLP that halves the width twice: d → d//2 → d//4 → ``outputs``, with ReLU, ``[..., d]`` → ``[..., outputs]``.

    ``dropout`` is applied before each of the ``hidden`` layers, of which there may be more or fewer; with none the head
    is a linear map.
    """

    def __init__(self, dim: int, outputs: int, *, hidden: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        widths = [max(1, dim // 2**layer) for layer in range(hidden + 1)]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.out = nn.Linear(widths[-1], outputs)
        self.dropout = dropout

    def forward(self, x: Tensor, seeds: Sequence[int] = ()) -> Tensor:
        """``seeds``: of each dropout, where they were drawn before."""
        for linear, seed in itertools.zip_longest(self.hidden, seeds):
            x = torch.relu(linear(dropout(x, self.dropout, self.training, seed)))
        return self.out(x)
