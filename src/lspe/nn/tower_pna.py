"""PNA and PNA-LSPE with towers (section "PNA-LSPE" of the paper)."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from lspe.nn.pna import PNA
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.ops import dropout, tanh_residual


class TowerPNA(PNA):
    r"""The layer with T towers and a mixing map W behind them.

    .. math::
        h_i' &= h_i + \mathrm{LReLU}(W_h\, \mathrm{BN}(\textstyle\big\Vert_t\, U_h^t \dots)) \\
        p_i' &= p_i + \tanh(W_p\, \textstyle\big\Vert_t\, U_p^t \dots)

    [h, p] is concatenated once and cut into T contiguous blocks: the first towers see only h, the last only p.
    Dropout is applied before the mixing maps. Arguments and shapes as :class:`PNA`; T divides d.
    """

    def __init__(self, dim: int, edge_dim: int, *, towers: int, lspe: bool = False, **options: Any) -> None:
        super().__init__(dim, edge_dim, towers=towers, lspe=lspe, **options)
        self.mix_h = _mixing(dim)
        if lspe:
            self.mix_p = _mixing(dim)

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        check_streams(h, p, e, graph, dim=self.dim, edge_dim=self.edge_dim, lspe=self.lspe)
        h_new = dropout(self._normalized_structure(h, p, e, graph), self.dropout, self.training)
        h_new = F.leaky_relu(self.mix_h(h_new))
        h_new = h + h_new if self.residual else h_new
        if p is None:
            return h_new, None, e
        p_new = dropout(self.aggregate_p(p, e, graph), self.dropout, self.training)
        return h_new, tanh_residual(self.mix_p(p_new), self._residual(p)), e


def _mixing(dim: int) -> nn.Linear:
    linear = nn.Linear(dim, dim)
    nn.init.xavier_uniform_(linear.weight, gain=1 / dim)
    nn.init.zeros_(linear.bias)
    return linear
