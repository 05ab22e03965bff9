"""GatedGCN and GatedGCN-LSPE (section "GatedGCN-LSPE" of the paper)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lspe.nn.norm import BatchNorm, unchanged_statistics
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.ops import dropout, fusible, scatter_sum, tanh_residual
from lspe.ops.choice import weight_and_bias
from lspe.ops.fused.dropout import draw_seeds
from lspe.ops.fused.gate import Layer, gated_layers
from lspe.ops.fused.layout import LANES

EPSILON = 1e-6

Drop = Literal["stream", "branch"]


class GatedGCN(nn.Module):
    r"""A sparse layer with soft attention gates on its edges.

    .. math::
        h_i' &= h_i + \mathrm{ReLU}\Big(\mathrm{BN}\Big(A_1 \begin{bmatrix} h_i \\ p_i \end{bmatrix}
            + \sum_{j} \eta_{ij} \odot A_2 \begin{bmatrix} h_j \\ p_j \end{bmatrix}\Big)\Big) \\
        e_{ij}' &= e_{ij} + \mathrm{ReLU}(\mathrm{BN}(\hat\eta_{ij})) \\
        p_i' &= p_i + \tanh\Big(C_1 p_i + \sum_{j} \eta_{ij} \odot C_2 p_j\Big) \\
        \hat\eta_{ij} &= B_1 h_i + B_2 h_j + B_3 e_{ij}, \qquad
        \eta_{ij} = \frac{\sigma(\hat\eta_{ij})}{\sum_{j'} \sigma(\hat\eta_{ij'}) + \epsilon}

    Without ``lspe`` there is no position: A1 and A2 see h alone and the third line is left out.

    Args:
        dim: d, the width of all three streams.
        lspe: learn positions p beside the structure h.
        dropout: on h, e and p.
        drop: what it is applied to: the ``stream``, after the residual, as the paper's results were made, or the
            ``branch``, what is added to the residual, so that what a stream had is not lost.
        size_norm: divide the aggregate by √n of the graph before BN. The paper does not mention it; its
            results were made with it wherever positions are learned.
        residual: add the input of each stream to its output.

    Shapes:
        h ``[N, d]``, p ``[N, d]`` (``None`` without ``lspe``), e ``[E, d]`` → the same.

    """

    def __init__(
        self,
        dim: int,
        *,
        lspe: bool = False,
        dropout: float = 0.0,
        drop: Drop = "stream",
        size_norm: bool = False,
        residual: bool = True,
    ) -> None:
        super().__init__()
        node_dim = 2 * dim if lspe else dim
        self.A1 = nn.Linear(node_dim, dim)
        self.A2 = nn.Linear(node_dim, dim)
        self.B1 = nn.Linear(dim, dim)
        self.B2 = nn.Linear(dim, dim)
        self.B3 = nn.Linear(dim, dim)
        self.C1 = nn.Linear(dim, dim) if lspe else None
        self.C2 = nn.Linear(dim, dim) if lspe else None
        self.norm_h = BatchNorm(dim)
        self.norm_e = BatchNorm(dim)
        self.dim = self.edge_dim = dim
        self.lspe = lspe
        self.dropout = dropout
        self.drop = drop
        self.size_norm = size_norm
        self.residual = residual

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        self.check(h, p, e, graph)
        if self.are_fusible([self], h, p, e, graph):
            return self.run([self], h, p, e, graph)
        return self.equations(h, p, e, graph)

    def check(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> None:
        """Say so where the streams do not fit."""
        check_streams(h, p, e, graph, dim=self.dim, edge_dim=self.dim, lspe=self.lspe)

    @property
    def is_local(self) -> bool:
        """Whether a node's result depends on the edges into it and their sources alone."""
        return not self.size_norm

    def equations(
        self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology, seeds: Sequence[int | None] = (None,) * 3
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """The layer in plain PyTorch; ``seeds``, of the dropout of h, e and p, where it was drawn before."""
        h_new, p_new, eta_hat = self.convolution(h, p, e, graph)
        scale = graph.inverse_sqrt_size(h.dtype) if self.size_norm else None
        h_new = self._with_residual(partial(self.norm_h, h_new, scale=scale, relu=True), h, seeds[0])
        e_new = self._with_residual(partial(self.norm_e, eta_hat, relu=True), e, seeds[1])
        if p is None or p_new is None:
            return h_new, None, e_new
        return h_new, self._with_residual(partial(tanh_residual, p_new), p, seeds[2]), e_new

    def _with_residual(self, branch: Callable[..., Tensor], stream: Tensor, seed: int | None) -> Tensor:
        """A stream and what is added to it, and dropout of either; ``branch`` adds its ``residual`` itself."""
        residual = stream if self.residual else None
        if self.drop == "stream":
            return dropout(branch(residual=residual), self.dropout, self.training, seed)
        added = dropout(branch(residual=None), self.dropout, self.training, seed)
        return added if residual is None else residual + added

    def convolution(
        self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        r"""What BN and tanh are applied to, ``[N, d]`` of h and of p, and :math:`\hat\eta` ``[E, d]``.

        Maps are applied per node before the gather. The denominator of η is the same for all edges of a node, so the
        sums are divided by it.
        """
        j, i = graph.edge_index
        hp = h if p is None else torch.cat([h, p], dim=-1)
        eta_hat = self.B1(h)[i] + self.B2(h)[j] + self.B3(e)
        sigma = torch.sigmoid(eta_hat)
        total = scatter_sum(sigma, i, graph.num_nodes) + EPSILON
        h_new = self.A1(hp) + scatter_sum(sigma * self.A2(hp)[j], i, graph.num_nodes) / total
        if p is None or self.C1 is None or self.C2 is None:
            return h_new, None, eta_hat
        p_new = self.C1(p) + scatter_sum(sigma * self.C2(p)[j], i, graph.num_nodes) / total
        return h_new, p_new, eta_hat

    def _parts(self) -> list[Any]:
        """The maps and the two normalisations, in the order of :func:`lspe.ops.fused.gate.gated_layers`."""
        maps = ("B1", "B2", "A1", "A2", "B3", "C1", "C2") if self.lspe else ("B1", "B2", "A1", "A2", "B3")
        return [self._modules[name] for name in (*maps, "norm_h", "norm_e")]

    def kind(self) -> tuple[object, ...]:
        """What layers have in common that are one operator."""
        return self.dim, self.lspe

    @staticmethod
    def are_fusible(layers: Sequence["GatedGCN"], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> bool:
        """Whether layers of one kind are one operator."""
        maps: list[nn.Module] = []
        weights: list[Tensor] = []
        for layer in layers:
            *own_maps, norm_h, norm_e = layer._parts()
            usual = norm_h.is_ordinary() and norm_e.is_ordinary() and 0 <= layer.dropout <= 1
            if not usual or layer.dim < LANES:
                return False
            maps += own_maps
            weights += [weight_and_bias(norm_h)[0], weight_and_bias(norm_e)[0]]
        return fusible(h, p, e, *weights, maps=maps)

    def _as_in_c(self, nodes: int, edges: int) -> Layer:
        drops = self.training and self.dropout > 0
        return Layer(
            residual=self.residual,
            scaled=self.size_norm,
            drop_branch=self.drop == "branch",
            dropout=self.dropout if drops else 0.0,
            seeds=draw_seeds(3) if drops else (0, 0, 0),
            norms=(self.norm_h.in_layer(nodes), self.norm_e.in_layer(edges)),
        )

    @staticmethod
    def run(
        layers: Sequence["GatedGCN"], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Layers of one kind, which are fusible, as one operator."""
        in_c = [layer._as_in_c(h.size(0), e.size(0)) for layer in layers]
        parameters = [one for layer in layers for part in layer._parts() for one in weight_and_bias(part)]
        scale = graph.inverse_sqrt_size(h.dtype) if any(layer.size_norm for layer in layers) else None

        def plain(h: Tensor, p: Tensor | None, e: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
            for layer, drawn in zip(layers, in_c, strict=True):
                h, p, e = layer.equations(h, p, e, graph, drawn.seeds)
            return h, p, e

        def again(h: Tensor, p: Tensor | None, e: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
            with unchanged_statistics(*(norm for layer in layers for norm in (layer.norm_h, layer.norm_e))):
                return plain(h, p, e)

        return gated_layers(h, p, e, in_c, parameters, graph.edges, scale, plain=plain, again=again)
