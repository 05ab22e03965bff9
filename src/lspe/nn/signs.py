"""An embedding of Laplacian eigenvectors that does not depend on their signs, as SignNet's."""

from typing import Literal

import torch
from torch import Tensor, nn

from lspe.nn.topology import Topology
from lspe.ops.scatter import scatter_sum

Signs = Literal["random", "invariant"]
"""What a network does about signs that mean nothing: draw them anew in each step of training, or be blind to them."""


class SignInvariantEmbedding(nn.Module):
    r"""Columns that are determined up to their sign → one vector per node.

    .. math::
        z_i = \rho\big(\big[\varphi(v_1)_i + \varphi(-v_1)_i, \dots, \varphi(v_k)_i + \varphi(-v_k)_i\big]\big),
        \qquad \varphi(v) = x^2, \quad
        x_i^{l+1} = \mathrm{MLP}_l\Big(x_i^l + \sum_{j \in \mathcal{N}_i} x_j^l\Big), \quad x^0 = v

    φ, two layers of GIN shared by all columns, sees a node among its neighbours: a function of :math:`v_i` alone would
    lose which nodes lie on the same side of an eigenvector. What remains open is the basis of an eigenvalue that
    occurs several times.

    Args:
        k: number of columns.
        dim: d, width of the result.
        width: m, of φ.

    Shapes:
        vectors ``[N, k]`` → ``[N, d]``.

    """

    def __init__(self, k: int, dim: int, width: int = 16) -> None:
        super().__init__()
        self.phi = nn.ModuleList(
            nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width)) for inputs in (1, width)
        )
        self.rho = nn.Sequential(nn.Linear(k * width, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, vectors: Tensor, graph: Topology) -> Tensor:
        source, target = graph.real_edge_index
        x = torch.stack([vectors, -vectors], dim=1).unsqueeze(-1)  # [N, 2, k, 1]
        for mlp in self.phi:
            x = mlp(x + scatter_sum(x[source], target, graph.num_nodes))
        return self.rho(x.sum(1).flatten(1))
