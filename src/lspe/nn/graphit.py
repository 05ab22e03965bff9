"""GraphiT and GraphiT-LSPE (section "GraphiT-LSPE" of the paper)."""

from torch import Tensor

from lspe.nn.full_graph import FullGraphLayer
from lspe.nn.topology import Topology


class GraphiT(FullGraphLayer):
    r"""Full attention weighed by how near two nodes are under diffusion.

    .. math:: f_{ij} = K_{ij}, \qquad K = (I - \beta L)^{steps}

    L is the symmetric normalised Laplacian of the original graph. Edges and added pairs share the kernel.

    Args:
        beta: β, how much diffuses in a step.
        steps: the exponent, p in the paper.
        others: as :class:`~lspe.nn.full_graph.FullGraphLayer`.

    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        lspe: bool = False,
        dropout: float = 0.0,
        residual: bool = True,
        beta: float = 0.25,
        steps: int = 16,
    ) -> None:
        super().__init__(dim, heads, lspe=lspe, dropout=dropout, residual=residual)
        self.beta = beta
        self.steps = steps

    def pair_factors(self, graph: Topology, like: Tensor) -> tuple[Tensor, Tensor]:
        kernel = graph.diffusion_kernel(self.beta, self.steps, like.dtype)
        return kernel, kernel
