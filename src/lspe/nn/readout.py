"""From nodes to graphs or edges, and from a vector to a prediction."""

import itertools
from typing import Literal

import torch
from torch import Tensor, nn

from lspe.nn.topology import Topology
from lspe.ops import dropout, scatter_max, scatter_sum

Readout = Literal["mean", "sum", "max", "none", "edge"]


def readout(h: Tensor, e: Tensor, graph: Topology, kind: Readout) -> Tensor:
    r"""What the head is given: a vector per graph, per node or per edge.

    - ``mean``, ``sum``, ``max``: of the nodes of each graph, ``[B, d]``;
    - ``none``: the nodes as they are, ``[N, d]``;
    - ``edge``: :math:`[h_j, h_i, e_{ij}]` of each edge from j to i, ``[E, 2d + edge_dim]``.
    """
    if kind == "edge":
        source, target = graph.edge_index
        return torch.cat([h[source], h[target], e], dim=-1)
    return pool(h, graph, kind)


def pool(h: Tensor, graph: Topology, kind: Readout) -> Tensor:
    """``[N, d]`` → ``[B, d]``; ``none`` leaves the nodes as they are."""
    if kind == "none":
        return h
    if kind == "max":
        return scatter_max(h, graph.batch, graph.num_graphs)
    total = scatter_sum(h, graph.batch, graph.num_graphs)
    if kind == "sum":
        return total
    return total / graph.graph_sizes.clamp(min=1).unsqueeze(-1).to(h.dtype)


class Head(nn.Module):
    """An MLP that halves the width twice: d → d//2 → d//4 → ``outputs``, with ReLU, ``[..., d]`` → ``[..., outputs]``.

    ``dropout`` is applied before each hidden layer.
    """

    def __init__(self, dim: int, outputs: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        widths = [dim, dim // 2, dim // 4]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.out = nn.Linear(widths[-1], outputs)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        for linear in self.hidden:
            x = torch.relu(linear(dropout(x, self.dropout, self.training)))
        return self.out(x)
