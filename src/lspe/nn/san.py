"""SAN and SAN-LSPE (section "SAN-LSPE" of the paper)."""

import torch
from torch import Tensor, nn

from lspe.nn.full_graph import FullGraphLayer
from lspe.nn.topology import Topology


class SAN(FullGraphLayer):
    r"""Full attention in which a learned scalar balances edges against added pairs.

    .. math:: f_{ij} = \begin{cases} 1 / (1 + \gamma) & ij \in E \\ \gamma / (1 + \gamma) & ij \notin E \end{cases}

    γ is one scalar for a whole network, clamped to [0, 1] where it is used: pass the same parameter to all layers.

    Args:
        gamma: γ, ``[1]``; a parameter of its own, starting at 0.1, where it is left out.
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
        gamma: nn.Parameter | None = None,
    ) -> None:
        super().__init__(dim, heads, lspe=lspe, dropout=dropout, residual=residual)
        self.gamma = nn.Parameter(torch.tensor([0.1])) if gamma is None else gamma

    def pair_factors(self, graph: Topology, like: Tensor) -> tuple[Tensor, Tensor]:
        gamma = self.gamma.to(like.dtype).squeeze().clamp(0, 1)
        return 1 / (1 + gamma), gamma / (1 + gamma)
