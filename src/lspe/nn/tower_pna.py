"""PNA and PNA-LSPE with towers (section "PNA-LSPE" of the paper)."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from lspe.nn.norm import unchanged_statistics
from lspe.nn.pna import PNA, PrincipalAggregation
from lspe.nn.topology import Topology
from lspe.ops import dropout, fusible, is_unchanged, tanh_residual
from lspe.ops.fused.dropout import draw_seeds
from lspe.ops.fused.layout import LANES
from lspe.ops.fused.look_ups import looked_up
from lspe.ops.fused.tower_layers import Messages, TowerLayer, tower_layers


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
        self.check(h, p, e, graph)
        if self.are_fusible([self], h, p, e, graph):
            return self.run([self], h, p, e, graph)
        return self.equations(h, p, e, graph)

    def equations(
        self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology, seeds: Sequence[int | None] = (None, None)
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """The layer in plain PyTorch; ``seeds``, of the dropout of h and p, where it was drawn before."""
        h_new = dropout(self._normalized_structure(h, p, e, graph), self.dropout, self.training, seeds[0])
        h_new = F.leaky_relu(self.mix_h(h_new))
        h_new = h + h_new if self.residual else h_new
        if p is None:
            return h_new, None, e
        p_new = dropout(self.aggregate_p(p, e, graph), self.dropout, self.training, seeds[1])
        return h_new, tanh_residual(self.mix_p(p_new), self._residual(p)), e

    def kind(self) -> tuple[object, ...]:
        """What layers have in common that are one operator."""
        return self.dim, self.edge_dim, self.lspe, *_settings(self.aggregate_h)

    @staticmethod
    def are_fusible(layers: Sequence["TowerPNA"], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> bool:
        """Whether layers of one kind are one operator."""
        return all(layer._is_fusible(h, p, e, graph) for layer in layers)

    def _is_fusible(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> bool:
        aggregations, mixing = zip(*self._streams(), strict=True)
        usual = type(self) is TowerPNA and self.norm_h.is_ordinary() and 0 <= self.dropout <= 1 and self.dim >= LANES
        if not usual or not all(is_unchanged(one, PrincipalAggregation) for one in aggregations):
            return False
        if any(_settings(one) != _settings(self.aggregate_h) for one in aggregations):
            return False
        return fusible(h, p, e, maps=mixing) and fusible(h, *self.parameters_in_c())

    def _streams(self) -> list[tuple[PrincipalAggregation, nn.Linear]]:
        streams = [(self.aggregate_h, self.mix_h)]
        return [*streams, (self.aggregate_p, self.mix_p)] if self.lspe else streams

    def parameters_in_c(self) -> list[Tensor]:
        parts = [part for one, mix in self._streams() for part in (one.message, one.update, mix)]
        return [x for part in (*parts, self.norm_h) for x in (part.weight, part.bias)]

    def in_c(self, nodes: int) -> TowerLayer:
        drops = self.training and self.dropout > 0
        return TowerLayer(
            residual=self.residual,
            scaled=self.size_norm,
            dropout=self.dropout if drops else 0.0,
            seeds=draw_seeds(2) if drops else (0, 0),
            norm=self.norm_h.in_layer(nodes),
        )

    @staticmethod
    def run(
        layers: Sequence["TowerPNA"], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Layers of one kind, which are fusible, as one operator."""
        in_c = [layer.in_c(h.size(0)) for layer in layers]
        parameters = [x for layer in layers for x in layer.parameters_in_c()]
        one, source = layers[0].aggregate_h, looked_up(e)
        table, kind = (e, None) if source is None else (source.values, source.kind)
        messages = Messages(one.towers, one.aggregators, one.scale(graph, h.dtype), graph.edges, kind)
        size_scale = graph.inverse_sqrt_size(h.dtype) if any(layer.size_norm for layer in layers) else None

        def plain(h: Tensor, p: Tensor | None, table: Tensor) -> tuple[Tensor, Tensor | None]:
            e = table if kind is None else table.index_select(0, kind)
            for layer, drawn in zip(layers, in_c, strict=True):
                h, p, _ = layer.equations(h, p, e, graph, drawn.seeds)
            return h, p

        def again(h: Tensor, p: Tensor | None, table: Tensor) -> tuple[Tensor, Tensor | None]:
            with unchanged_statistics(*(layer.norm_h for layer in layers)):
                return plain(h, p, table)

        return *tower_layers(h, p, table, in_c, parameters, messages, size_scale, plain=plain, again=again), e


def _settings(one: nn.Module) -> tuple[object, ...]:
    """Of an aggregation; another module in its place is like no other."""
    if not isinstance(one, PrincipalAggregation):
        return (object(),)
    return one.towers, one.aggregators, one.scalers, one.delta


def _mixing(dim: int) -> nn.Linear:
    linear = nn.Linear(dim, dim)
    nn.init.xavier_uniform_(linear.weight, gain=1 / dim)
    nn.init.zeros_(linear.bias)
    return linear
