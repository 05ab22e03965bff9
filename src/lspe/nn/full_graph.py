"""Layers of attention over the full graph, with a feed-forward part."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.nn.attention import PairAttention
from lspe.nn.norm import BatchNorm, unchanged_statistics
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.ops import dropout, fusible, is_unchanged, tanh_residual
from lspe.ops.fused.dropout import draw_seeds
from lspe.ops.fused.full import Layer, full_layers
from lspe.ops.fused.layout import LANES

Factors = tuple[Tensor, Tensor]
"""Of edges and of added pairs: scalars, or ``[B, n_max, n_max]``."""


class FullGraphLayer(nn.Module):
    r"""What SAN and GraphiT have in common; they differ in the factors of the pairs.

    .. math::
        \bar h_i &= \mathrm{BN}\Big(h_i + O\, \mathrm{Attention}\Big(
            \begin{bmatrix} h \\ p \end{bmatrix}\Big)_i\Big) \\
        h_i' &= \mathrm{BN}(\bar h_i + W_2\, \mathrm{ReLU}(W_1 \bar h_i)) \\
        p_i' &= p_i + \tanh(O_p\, \mathrm{Attention}_p(p)_i)

    Args:
        dim: d, width of h, p and e.
        heads: H.
        lspe: learn positions p beside the structure h.
        dropout: on the attention's result and inside the feed-forward part.
        residual: add the input of each stream to its output.

    Shapes:
        h ``[N, d]``, p ``[N, d]`` (``None`` without ``lspe``), e ``[E, d]`` → the same, e unchanged.
        The embedding of the pairs which ``edge_index`` does not list, one for all or one each, comes with the topology.

    """

    def __init__(
        self, dim: int, heads: int, *, lspe: bool = False, dropout: float = 0.0, residual: bool = True
    ) -> None:
        super().__init__()
        self.attention_h = PairAttention(2 * dim if lspe else dim, dim, heads)
        self.O = nn.Linear(dim, dim)
        self.W1 = nn.Linear(dim, 2 * dim)
        self.W2 = nn.Linear(2 * dim, dim)
        self.norm_attention = BatchNorm(dim)
        self.norm_h = BatchNorm(dim)
        if lspe:
            self.attention_p = PairAttention(dim, dim, heads)
            self.O_p = nn.Linear(dim, dim)
        self.dim = dim
        self.heads = heads
        self.lspe = lspe
        self.dropout = dropout
        self.residual = residual

    @abstractmethod
    def pair_factors(self, graph: Topology, like: Tensor) -> Factors:
        """Factors of edges and of added pairs, in the dtype and on the device of ``like``."""

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        self.check(h, p, e, graph)
        if self.are_fusible([self], h, p, e, graph):
            return self.run([self], h, p, e, graph)
        return *self.equations(h, p, e, graph, self.pair_factors(graph, h)), e

    def check(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> None:
        """Say so where the streams, the graphs or the embedding of added pairs do not fit."""
        check_streams(h, p, e, graph, dim=self.dim, edge_dim=self.dim, lspe=self.lspe)
        graph.pairs.check_edges()
        added = graph.added_pair
        if added.shape != (self.dim,) and added.shape != (graph.pairs.unlisted_index.size(1), self.dim):
            raise ValueError(
                f"the embedding of added pairs is {list(added.shape)}, but the layer takes [{self.dim}], or a row for "
                f"each of the {graph.pairs.unlisted_index.size(1)} pairs without an edge"
            )

    def equations(
        self,
        h: Tensor,
        p: Tensor | None,
        e: Tensor,
        graph: Topology,
        factors: Factors,
        seeds: Sequence[int | None] = (None,) * 3,
    ) -> tuple[Tensor, Tensor | None]:
        """The layer in plain PyTorch; ``seeds``, of its dropout in turn, where it was drawn before."""
        node = torch.cat([h, p], dim=-1) if p is not None else h
        attention = self.attention_h(node, e, graph, *factors)
        attention = self.O(dropout(attention, self.dropout, self.training, seeds[0]))
        h_bar = self.norm_attention(h + attention if self.residual else attention)
        forward = dropout(F.relu(self.W1(h_bar)), self.dropout, self.training, seeds[1])
        forward = self.W2(forward)
        h_new = self.norm_h(h_bar + forward if self.residual else forward)
        if p is None:
            return h_new, None
        attention = self.attention_p(p, e, graph, *factors)
        p_new = self.O_p(dropout(attention, self.dropout, self.training, seeds[2]))
        return h_new, tanh_residual(p_new, p if self.residual else None)

    def kind(self) -> tuple[object, ...]:
        """What layers have in common that are one operator."""
        return self.dim, self.heads, self.lspe

    @staticmethod
    def are_fusible(
        layers: Sequence["FullGraphLayer"], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology
    ) -> bool:
        """Whether layers of one kind are one operator."""
        return all(layer._is_fusible(h, p, e, graph) for layer in layers)

    def _is_fusible(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> bool:
        attentions, norms = self._attentions(), (self.norm_attention, self.norm_h)
        usual = all(is_unchanged(part, PairAttention) and part.heads == self.heads for part in attentions)
        if not (usual and all(norm.is_ordinary() for norm in norms) and 0 <= self.dropout <= 1):
            return False
        factors = self.pair_factors(graph, h)
        if self.dim < LANES or not all(attention.is_simple(graph, *factors) for attention in attentions):
            return False
        maps = [linear for attention in attentions for linear in attention.maps()]
        tensors = (h, p, e, graph.added_pair, *factors, *(norm.weight for norm in norms))
        return fusible(*tensors, maps=maps, bias=False) and fusible(h, maps=self._maps())

    def parameters_in_c(self) -> list[Tensor]:
        """In the order of :func:`lspe.ops.fused.full.full_layers`."""
        maps, norms = self._maps(), (self.norm_attention, self.norm_h)
        weights = [linear.weight for attention in self._attentions() for linear in attention.maps()]
        weights += [linear.weight for linear in maps] + [linear.bias for linear in maps]
        return weights + [parameter for norm in norms for parameter in (norm.weight, norm.bias)]

    def as_in_c(self, nodes: int, factors: Factors) -> Layer:
        """What the layer is beside its parameters; draws the seeds of its dropout."""
        drops = self.training and self.dropout > 0
        return Layer(
            residual=self.residual,
            dropout=self.dropout if drops else 0.0,
            seeds=draw_seeds(3) if drops else (0, 0, 0),
            matrices=factors if factors[0].dim() else (None, None),
            norms=(self.norm_attention.in_layer(nodes), self.norm_h.in_layer(nodes)),
        )

    def _attentions(self) -> list[PairAttention]:
        return [self.attention_h, self.attention_p] if self.lspe else [self.attention_h]

    def _maps(self) -> list[nn.Linear]:
        return [self.O, self.O_p, self.W1, self.W2] if self.lspe else [self.O, self.W1, self.W2]

    @staticmethod
    def run(
        layers: Sequence["FullGraphLayer"], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Layers of one kind, which are fusible, as one operator."""
        factors = [layer.pair_factors(graph, h) for layer in layers]
        in_c = [layer.as_in_c(h.size(0), given) for layer, given in zip(layers, factors, strict=True)]
        parameters = [parameter for layer in layers for parameter in layer.parameters_in_c()]
        ones = h.new_ones(2)
        numbers = torch.stack([ones if given[0].dim() else torch.stack(given) for given in factors])

        def plain(
            h: Tensor, p: Tensor | None, e: Tensor, added_pair: Tensor, numbers: Tensor
        ) -> tuple[Tensor, Tensor | None]:
            joined = graph.with_added_pair(added_pair)
            for layer, drawn, given, pair in zip(layers, in_c, factors, numbers.unbind(), strict=True):
                real, added = given if given[0].dim() else pair.unbind()
                h, p = layer.equations(h, p, e, joined, (real, added), drawn.seeds)
            return h, p

        def again(
            h: Tensor, p: Tensor | None, e: Tensor, added_pair: Tensor, numbers: Tensor
        ) -> tuple[Tensor, Tensor | None]:
            with unchanged_statistics(*(norm for layer in layers for norm in (layer.norm_attention, layer.norm_h))):
                return plain(h, p, e, added_pair, numbers)

        heads = layers[0].heads
        h, p = full_layers(
            h, p, e, graph.added_pair, numbers, in_c, parameters, graph.pairs, heads, plain=plain, again=again
        )
        return h, p, e
