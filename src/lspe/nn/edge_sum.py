"""A first layer that tells each node what edges it has."""

from torch import Tensor, nn

from lspe.nn.topology import Topology
from lspe.ops import scatter_sum


class EdgeSum(nn.Module):
    r"""The edges of a node as a part of its structure.

    .. math::
        h_i' = h_i + \sum_{j \in \mathcal N_i} e_{ij}

    Gates that are normalised make a mean over neighbours, of which nobody can tell how many there were: behind it an
    atom with one single bond to carbon is like one with three. The sum has their number, and that of each kind of edge,
    of which follows how many hydrogens an atom holds where its graph does not say so.

    It is a layer as all others are, without parameters: the embedding of an edge serves both streams; with a map of it
    networks were found to learn worse (docs/reproduce.md). Only where edges are not as wide as nodes there is a map W.

    Args:
        edge_dim: width of e.
        dim: d.

    Shapes:
        h ``[N, d]``, p, e ``[E, edge_dim]`` → the same, p and e unchanged.

    """

    is_local = True

    def __init__(self, edge_dim: int, dim: int) -> None:
        super().__init__()
        self.W = nn.Identity() if edge_dim == dim else nn.Linear(edge_dim, dim, bias=False)

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        real = e if graph.real is None else e[graph.real]
        return h + self.W(scatter_sum(real, graph.real_edge_index[1], h.size(0))), p, e
