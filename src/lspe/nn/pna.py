"""PNA and PNA-LSPE (section "PNA-LSPE" of the paper)."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lspe.nn.norm import BatchNorm
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.ops import dropout, fusible, scatter_max, scatter_min, scatter_sum, tanh_residual
from lspe.ops.fused.edge_maps import map_values
from lspe.ops.fused.principal import AGGREGATORS, principal_aggregation

SCALERS = ("identity", "amplification", "attenuation")
ALL_AGGREGATORS = ("mean", "max", "min", "std")
VARIANCE_FLOOR = 1e-5


class TowerLinear(nn.Module):
    """T linear maps side by side, each over its own slice: ``[..., T, in]`` → ``[..., T, out]``.

    Starts Xavier-uniform with gain 1/fan-in and zero bias.
    """

    def __init__(self, towers: int, in_dim: int, out_dim: int) -> None:
        super().__init__()
        bound = math.sqrt(6 / (in_dim + out_dim)) / in_dim
        self.weight = nn.Parameter(torch.empty(towers, out_dim, in_dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(towers, out_dim))


def _per_tower(x: Tensor, weight: Tensor) -> Tensor:
    """``[N, T, in]`` by ``[T, out, in]`` → ``[N, T, out]``."""
    return torch.bmm(x.transpose(0, 1), weight.transpose(1, 2)).transpose(0, 1)


class PrincipalAggregation(nn.Module):
    r"""The principal neighbourhood aggregation :math:`U(x_i, \bigoplus_j M(x_i, e_{ij}, x_j))`.

    .. math::
        \bigoplus = \begin{bmatrix} 1 \\ \log(D+1)/\delta \\ \delta/\log(D+1) \end{bmatrix} \otimes
            \begin{bmatrix} \mu \\ \max \\ \min \\ \sigma \end{bmatrix}

    M and U are linear. D is the in-degree, δ the mean of log(D+1) over the training set. With T towers input and
    output are cut into T contiguous blocks, each with its own M and U; every tower sees the whole of e.

    M is applied per node before the gather; U before the scalers, which are one number per node.

    Args:
        in_dim: width of x, divisible by ``towers``.
        out_dim: width of the result, divisible by ``towers``.
        edge_dim: width of e.
        delta: δ.
        towers: T.
        aggregators: out of mean, sum, max, min, std.
        scalers: out of identity, amplification, attenuation.

    Shapes:
        x ``[N, in_dim]``, e ``[E, edge_dim]`` → ``[N, out_dim]``.

    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        edge_dim: int,
        *,
        delta: float,
        towers: int = 1,
        aggregators: Sequence[str] = ALL_AGGREGATORS,
        scalers: Sequence[str] = SCALERS,
    ) -> None:
        super().__init__()
        if in_dim % towers or out_dim % towers:
            raise ValueError(f"{towers} towers cannot share {in_dim} inputs and {out_dim} outputs evenly")
        if unknown := [name for name in aggregators if name not in AGGREGATORS]:
            raise ValueError(f"unknown aggregator {unknown[0]!r}: choose among {', '.join(AGGREGATORS)}")
        if unknown := [name for name in scalers if name not in SCALERS]:
            raise ValueError(f"unknown scaler {unknown[0]!r}: choose among {', '.join(SCALERS)}")
        if not delta > 0:
            raise ValueError(f"delta is the mean of log(in-degree + 1) over the training set: {delta} is not positive")
        self.towers = towers
        self.tower_in = in_dim // towers
        self.tower_out = out_dim // towers
        self.delta = delta
        self.aggregators = tuple(aggregators)
        self.scalers = tuple(scalers)
        width = len(self.aggregators) * len(self.scalers) * self.tower_out
        self.message = TowerLinear(towers, 2 * self.tower_in + edge_dim, self.tower_out)
        self.update = TowerLinear(towers, self.tower_in + width, self.tower_out)

    def forward(self, x: Tensor, e: Tensor, graph: Topology) -> Tensor:
        scale = self.scale(graph, x.dtype)
        maps = (self.message.weight, self.message.bias, self.update.weight, self.update.bias)
        M_edge = self.message.weight[:, :, 2 * self.tower_in :].flatten(0, 1)
        if fusible(x, e, *maps):

            def aggregate(x: Tensor, at_edge: Tensor) -> Tensor:
                return self.aggregate(x, at_edge, graph, scale)

            values, kind = map_values(e, M_edge)
            return principal_aggregation(x, values, kind, maps, scale, graph.edges, self.aggregators, plain=aggregate)
        return self.aggregate(x, e @ M_edge.T, graph, scale)

    def aggregate(self, x: Tensor, at_edge: Tensor, graph: Topology, scale: Tensor) -> Tensor:
        """``at_edge`` ``[E, out_dim]``: what M makes of e; ``scale`` ``[N, S]``: the scalers' factor for each node."""
        x = x.view(-1, self.towers, self.tower_in)
        M_source, M_target = self.message.weight[:, :, : 2 * self.tower_in].split(self.tower_in, dim=-1)
        aggregates = self._aggregates(
            _per_tower(x, M_target).flatten(1) + self.message.bias.flatten(),
            _per_tower(x, M_source).flatten(1),
            at_edge,
            graph,
        )
        aggregates = aggregates.unflatten(-1, (self.towers, self.tower_out)).transpose(1, 2).flatten(2)
        U_self, U_aggregates = self.update.weight.tensor_split([self.tower_in], dim=-1)
        U_aggregates = U_aggregates.unflatten(-1, (len(self.scalers), -1))
        out = _per_tower(x, U_self) + self.update.bias
        for scaler in range(len(self.scalers)):
            out = out + _per_tower(aggregates, U_aggregates[:, :, scaler]) * scale[:, scaler].view(-1, 1, 1)
        return out.flatten(1)

    def _aggregates(self, at_target: Tensor, at_source: Tensor, at_edge: Tensor, graph: Topology) -> Tensor:
        r"""``[N, A, d]``: the aggregates of the messages :math:`m_{ij} = a_i + b_j + c_{ij}`.

        What the target adds is the same for all its messages: it shifts mean, max and min by itself, the sum by
        in-degree times itself, and leaves the standard deviation as it is. So only b + c is gathered. The standard
        deviation is :math:`\sqrt{\mathrm{ReLU}(E[m^2] - E[m]^2) + 10^{-5}}`. A node without in-edges aggregates to
        zero.
        """
        j, i = graph.edge_index
        rows = graph.num_nodes
        message = at_source[j] + at_edge
        degree = graph.in_degree.to(message.dtype).unsqueeze(-1)
        needs_sum = not {"mean", "sum", "std"}.isdisjoint(self.aggregators)
        total = scatter_sum(message, i, rows) if needs_sum else message
        mean = total / degree.clamp(min=1) if needs_sum else total

        def aggregate(name: str) -> Tensor:
            if name == "mean":
                return mean + at_target
            if name == "sum":
                return total + degree * at_target
            if name == "max":
                return scatter_max(message, i, rows) + at_target
            if name == "min":
                return scatter_min(message, i, rows) + at_target
            square = scatter_sum(message * message, i, rows) / degree.clamp(min=1)
            return torch.sqrt(torch.relu(square - mean * mean) + VARIANCE_FLOOR)

        zero = message.new_zeros(())
        return torch.stack([torch.where(degree > 0, aggregate(name), zero) for name in self.aggregators], dim=1)

    def scale(self, graph: Topology, dtype: torch.dtype) -> Tensor:
        """``[N, S]``: each scaler's factor for each node, computed once."""
        return graph.once(("scale", self.delta, self.scalers, dtype), lambda: self._scale(graph, dtype))

    def _scale(self, graph: Topology, dtype: torch.dtype) -> Tensor:
        log_degree = torch.log1p(graph.in_degree.to(dtype))
        factors = {
            "identity": torch.ones_like(log_degree),
            "amplification": log_degree / self.delta,
            # a node without in-edges has nothing to attenuate: its aggregate is zero
            "attenuation": torch.where(log_degree > 0, self.delta / log_degree.clamp(min=math.log(2)), log_degree),
        }
        return torch.stack([factors[scaler] for scaler in self.scalers], dim=1)


class PNA(nn.Module):
    r"""The layer without towers.

    .. math::
        h_i' &= h_i + \mathrm{ReLU}\Big(\mathrm{BN}\Big(U_h\Big(\begin{bmatrix} h_i \\ p_i \end{bmatrix},
            \bigoplus_j M_h\Big(\begin{bmatrix} h_i \\ p_i \end{bmatrix}, e_{ij}^0,
            \begin{bmatrix} h_j \\ p_j \end{bmatrix}\Big)\Big)\Big)\Big) \\
        p_i' &= p_i + \tanh\Big(U_p\Big(p_i, \bigoplus_j M_p(p_i, e_{ij}^0, p_j)\Big)\Big)

    Dropout is applied to the layer's input, and the residual starts from there.

    Args:
        dim: d, width of h and p.
        edge_dim: width of e, which stays :math:`e^0` in all layers.
        delta: mean of log(in-degree + 1) over the training set.
        lspe: learn positions p beside the structure h.
        dropout: on the input.
        size_norm: divide by √n of the graph before BN.
        residual: add the (dropped) input of each stream to its output.
        towers, aggregators, scalers: see :class:`PrincipalAggregation`.

    Shapes:
        h ``[N, d]``, p ``[N, d]`` (``None`` without ``lspe``), e ``[E, edge_dim]`` → the same, e unchanged.

    """

    def __init__(
        self,
        dim: int,
        edge_dim: int,
        *,
        delta: float,
        lspe: bool = False,
        dropout: float = 0.0,
        size_norm: bool = True,
        residual: bool = True,
        towers: int = 1,
        aggregators: Sequence[str] = ALL_AGGREGATORS,
        scalers: Sequence[str] = SCALERS,
    ) -> None:
        super().__init__()

        def aggregation(in_dim: int) -> PrincipalAggregation:
            return PrincipalAggregation(
                in_dim, dim, edge_dim, delta=delta, towers=towers, aggregators=aggregators, scalers=scalers
            )

        self.aggregate_h = aggregation(2 * dim if lspe else dim)
        if lspe:
            self.aggregate_p = aggregation(dim)
        self.norm_h = BatchNorm(dim)
        self.dim = dim
        self.edge_dim = edge_dim
        self.lspe = lspe
        self.dropout = dropout
        self.size_norm = size_norm
        self.residual = residual

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        self.check(h, p, e, graph)
        h = dropout(h, self.dropout, self.training)
        p = dropout(p, self.dropout, self.training) if p is not None else None
        h_new = self._normalized_structure(h, p, e, graph, relu=True, residual=self._residual(h))
        if p is None:
            return h_new, None, e
        return h_new, tanh_residual(self.aggregate_p(p, e, graph), self._residual(p)), e

    def check(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> None:
        """Say so where the streams do not fit."""
        check_streams(h, p, e, graph, dim=self.dim, edge_dim=self.edge_dim, lspe=self.lspe)

    @property
    def is_local(self) -> bool:
        """Whether a node's result depends on the edges into it and their sources alone."""
        return not self.size_norm

    def _normalized_structure(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology, **finish: Any) -> Tensor:
        h_new = self.aggregate_h(torch.cat([h, p], dim=-1) if p is not None else h, e, graph)
        scale = graph.inverse_sqrt_size(h.dtype) if self.size_norm else None
        return self.norm_h(h_new, scale=scale, **finish)

    def _residual(self, old: Tensor) -> Tensor | None:
        return old if self.residual else None
