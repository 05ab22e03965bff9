"""Degree encoding: how many edges a node has, unary."""

import torch
from torch import Tensor

from lspe.encodings.graphs import check_count, check_graphs
from lspe.encodings.kinds import EncodingKind


@torch.no_grad()
def degree_encoding(
    edge_index: Tensor,
    num_nodes: int | None,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The degree of every node of one graph or of a batch of graphs, in unary

    .. math::
        p_{im} = \min(1, \max(0, D_i - m + 1)), \qquad D_i = \sum_j w_{ij}, \qquad m = 1, \dots, k

    A node of three edges has [1, 1, 1, 0, …], one of weight 2.5 has [1, 1, ½, 0, …]: a linear map of these columns can
    be any function of the degree up to k, and degrees beyond k count as k. D is that of the random walk: the weights
    of the edges that leave the node, self loops once, parallel edges each.

    ``k`` is the highest degree that is told from those above it; the result is ``[N, k]``. The other arguments are
    those of :func:`~lspe.encodings.random_walk_encoding`.
    """
    check_count(k, "k")
    graphs = check_graphs(edge_index, num_nodes, edge_weight=edge_weight, batch=batch)
    source = graphs.edge_index[0]
    degree = torch.zeros(graphs.num_nodes, dtype=torch.float64, device=source.device)
    weight = degree.new_ones(source.numel()) if graphs.edge_weight is None else graphs.edge_weight
    degree.index_add_(0, source, weight)
    below = torch.arange(k, device=source.device)
    return (degree[:, None] - below).clamp(0, 1).to(dtype).to(edge_index.device)


DEGREE = EncodingKind(
    name="degree",
    title="Degree",
    columns="degrees",
    attribute="degree_pe",
    equation=r"p_{im} = \min(1, \max(0, D_i - m + 1)), \quad D_i = \sum_j w_{ij}",
    compute=degree_encoding,
)
