"""The paper's layers as one would write them with PyG's ``MessagePassing``, for comparison.

Each takes the modules, and so the weights, of one of ours: both give the same numbers.
"""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import DegreeScalerAggregation

from lspe.nn import LSPE, FullGraphLayer, GatedGCN, Network, PairAttention, PrincipalAggregation, Topology, TowerPNA
from lspe.nn.pna import TowerLinear


def twin(network: Network) -> Network:
    """A copy of ``network`` whose convolutions are those of this module; use it with plain operators."""
    network = copy.deepcopy(network)
    for number, layer in enumerate(network.layers):
        if isinstance(layer, GatedGCN):
            network.layers[number] = GatedGCNByPyG(layer)
        elif isinstance(layer, TowerPNA):
            layer.aggregate_h, layer.aggregate_p = TowersByPyG(layer.aggregate_h), TowersByPyG(layer.aggregate_p)
        elif isinstance(layer, FullGraphLayer):
            layer.attention_h, layer.attention_p = PairsByPyG(layer.attention_h), PairsByPyG(layer.attention_p)
        elif isinstance(layer, LSPE):
            network.layers[number] = LSPEByPyG(layer)
        else:
            raise TypeError(f"there is no twin of {type(layer).__name__}")
    return network


class GatedGCNByPyG(MessagePassing):
    """GatedGCN-LSPE."""

    def __init__(self, layer: GatedGCN) -> None:
        super().__init__(aggr="sum")
        self.layer = layer

    def forward(self, h: Tensor, p: Tensor, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor, Tensor]:
        layer = self.layer
        node = torch.cat([h, p], dim=-1)
        eta_hat = self.edge_updater(graph.edge_index, b1=layer.B1(h), b2=layer.B2(h), b3=layer.B3(e))
        sums = self.propagate(graph.edge_index, gate=torch.sigmoid(eta_hat), a2=layer.A2(node), c2=layer.C2(p))
        of_h, of_p, total = sums.chunk(3, dim=-1)
        h_new = layer.A1(node) + of_h / (total + 1e-6)
        p_new = layer.C1(p) + of_p / (total + 1e-6)
        h_new = h + F.relu(layer.norm_h(graph.size_norm(h_new) if layer.size_norm else h_new))
        streams = h_new, p + torch.tanh(p_new), e + F.relu(layer.norm_e(eta_hat))
        h, p, e = (F.dropout(x, layer.dropout, layer.training) for x in streams)
        return h, p, e

    def edge_update(self, b1_i: Tensor, b2_j: Tensor, b3: Tensor) -> Tensor:
        return b1_i + b2_j + b3

    def message(self, gate: Tensor, a2_j: Tensor, c2_j: Tensor) -> Tensor:
        return torch.cat([gate * a2_j, gate * c2_j, gate], dim=-1)


class LSPEByPyG(nn.Module):
    """LSPE around two of PyG's own convolutions."""

    def __init__(self, layer: LSPE) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, h: Tensor, p: Tensor, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor, Tensor]:
        layer = self.layer
        h_new = layer.conv_h(torch.cat([h, p], dim=-1), graph.edge_index, e)
        p_new = layer.conv_p(p, graph.edge_index, e)
        return h + F.relu(layer.norm_h(h_new)), p + torch.tanh(p_new), e


class TowersByPyG(MessagePassing):
    """PNA's aggregation, M and U applied as the paper writes them."""

    def __init__(self, inner: PrincipalAggregation) -> None:
        scaled = DegreeScalerAggregation(list(inner.aggregators), list(inner.scalers), torch.ones(2, dtype=torch.long))
        scaled.avg_deg_log.fill_(inner.delta)
        super().__init__(aggr=scaled, node_dim=0)
        self.inner = inner

    def forward(self, x: Tensor, e: Tensor, graph: Topology) -> Tensor:
        x = x.view(-1, self.inner.towers, self.inner.tower_in)
        aggregated = self.propagate(graph.edge_index, x=x, e=e)
        return per_tower(self.inner.update, torch.cat([x, aggregated], dim=-1)).flatten(1)

    def message(self, x_i: Tensor, x_j: Tensor, e: Tensor) -> Tensor:
        e = e.unsqueeze(1).expand(-1, self.inner.towers, -1)
        return per_tower(self.inner.message, torch.cat([x_j, x_i, e], dim=-1))


def per_tower(maps: TowerLinear, x: Tensor) -> Tensor:
    linear = zip(maps.weight, maps.bias, strict=True)
    return torch.stack([F.linear(x[:, t], weight, bias) for t, (weight, bias) in enumerate(linear)], dim=1)


class PairsByPyG(MessagePassing):
    """Attention over two lists of pairs, the edges and all others, each with its own weights."""

    def __init__(self, inner: PairAttention) -> None:
        super().__init__(aggr="sum", node_dim=0)
        self.inner = inner

    def forward(self, x: Tensor, e: Tensor, graph: Topology, f_real: Tensor, f_added: Tensor) -> Tensor:
        inner = self.inner
        number, target, source = graph.unlisted_pairs.nonzero().T
        first = torch.cumsum(graph.graph_sizes, 0) - graph.graph_sizes
        added = torch.stack([source, target]) + first[number]
        sums = self._sums(x, inner.Q, inner.K, inner.E(e), graph, graph.edge_index, f_real)
        c_added = inner.E_added(graph.added_pair).expand(added.size(1), -1)
        sums = sums + self._sums(x, inner.Q_added, inner.K_added, c_added, graph, added, f_added)
        return (sums[..., :-1] / (sums[..., -1:] + 1e-6)).flatten(1)

    def _sums(
        self, x: Tensor, Q: nn.Linear, K: nn.Linear, c: Tensor, graph: Topology, pairs: Tensor, factor: Tensor
    ) -> Tensor:
        q, k, v, c = (y.unflatten(-1, (self.inner.heads, -1)) for y in (Q(x), K(x), self.inner.V(x), c))
        f = factor[graph.pair_slot(pairs)] if factor.dim() else factor.expand(pairs.size(1))
        return self.propagate(pairs, q=q, k=k, v=v, c=c, f=f)

    def message(self, q_i: Tensor, k_j: Tensor, v_j: Tensor, c: Tensor, f: Tensor) -> Tensor:
        score = (q_i * k_j * c).sum(-1, keepdim=True) / math.sqrt(c.size(-1))
        weight = f.view(-1, 1, 1) * torch.exp(score.clamp(-5, 5))
        return torch.cat([weight * v_j, weight], dim=-1)
