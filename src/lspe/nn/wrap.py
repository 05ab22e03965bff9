"""LSPE around any message-passing layer of PyTorch Geometric (section "Generic formulation" of the paper)."""

import inspect

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.nn.norm import BatchNorm
from lspe.nn.topology import Topology
from lspe.ops import dropout


class LSPE(nn.Module):
    r"""Learn positions beside the structure, with layers of your choice.

    .. math::
        h_i' &= h_i + \mathrm{ReLU}\Big(\mathrm{BN}\Big(f_h\Big(\begin{bmatrix} h_i \\ p_i \end{bmatrix},
            \Big\{\begin{bmatrix} h_j \\ p_j \end{bmatrix}\Big\}_{j \in \mathcal{N}_i}, e_{ij}\Big)\Big)\Big) \\
        p_i' &= p_i + \tanh(f_p(p_i, \{p_j\}_{j \in \mathcal{N}_i}, e_{ij})) \\
        e_{ij}' &= e_{ij} + f_e(h_i, h_j, e_{ij})

    Args:
        conv_h: f_h, a PyG conv 2d → d.
        conv_p: f_p, a PyG conv d → d.
        dim: d.
        edge_update: f_e, a module on ``[E, 2d + edge_dim]`` → ``[E, edge_dim]``; edges stay :math:`e^0` without.
        edge_features: whether the convs take ``edge_attr``; found out from each conv where it is ``None``.
        dropout: after the residual, on h and p.
        residual: add the input of each stream to its output.

    Shapes:
        h ``[N, d]``, p ``[N, d]``, e ``[E, edge_dim]`` (or ``None``) → the same.

    Example:
        >>> from torch_geometric.nn import GATv2Conv
        >>> layer = LSPE(GATv2Conv(128, 64, edge_dim=64), GATv2Conv(64, 64, edge_dim=64), dim=64)

    """

    def __init__(
        self,
        conv_h: nn.Module,
        conv_p: nn.Module,
        dim: int,
        *,
        edge_update: nn.Module | None = None,
        edge_features: bool | None = None,
        dropout: float = 0.0,
        residual: bool = True,
    ) -> None:
        super().__init__()
        self.conv_h = conv_h
        self.conv_p = conv_p
        self.edge_update = edge_update
        self.norm_h = BatchNorm(dim)
        self.edges_to_h = _takes_edges(conv_h) if edge_features is None else edge_features
        self.edges_to_p = _takes_edges(conv_p) if edge_features is None else edge_features
        self.dropout = dropout
        self.residual = residual
        self.lspe = True

    def forward(self, h: Tensor, p: Tensor, e: Tensor | None, graph: Topology) -> tuple[Tensor, Tensor, Tensor | None]:
        h_new = _apply(self.conv_h, torch.cat([h, p], dim=-1), e if self.edges_to_h else None, graph, like=h)
        h_new = self._finish(F.relu(self.norm_h(h_new)), h)
        p_new = _apply(self.conv_p, p, e if self.edges_to_p else None, graph, like=p)
        p_new = self._finish(torch.tanh(p_new), p)
        if self.edge_update is not None and e is not None:
            e = e + self.edge_update(torch.cat([h[graph.target], h[graph.source], e], dim=-1))
        return h_new, p_new, e

    def _finish(self, new: Tensor, old: Tensor) -> Tensor:
        return dropout(old + new if self.residual else new, self.dropout, self.training)


def _apply(conv: nn.Module, x: Tensor, e: Tensor | None, graph: Topology, like: Tensor) -> Tensor:
    out: Tensor = conv(x, graph.edge_index) if e is None else conv(x, graph.edge_index, edge_attr=e)
    if out.shape != like.shape:
        raise ValueError(
            f"a conv gave {tuple(out.shape)} for a stream of {tuple(like.shape)}: "
            "conv_h has to map 2·dim to dim, conv_p dim to dim (mind concatenated heads)"
        )
    return out


def _takes_edges(conv: nn.Module) -> bool:
    """Whether a conv has an ``edge_attr`` argument and was built to use it."""
    takes = "edge_attr" in inspect.signature(conv.forward).parameters
    return takes and getattr(conv, "edge_dim", 0) is not None
