"""What ``GINEConv`` of PyTorch Geometric computes, with the fused sum of messages."""

from typing import Any

from torch import Tensor, nn

from lspe.nn.topology import Topology
from lspe.ops import fusible, is_unchanged
from lspe.ops.fused.edge_maps import map_values
from lspe.ops.fused.relu_sum import relu_sum


def gine(conv: Any, x: Tensor, e: Tensor, graph: Topology) -> Tensor:
    r""":math:`f\big((1 + \epsilon) x_i + \sum_{j \in \mathcal{N}_i} \mathrm{ReLU}(x_j + W e_{ij} + b)\big)`.

    Shapes:
        x ``[N, d]``, e ``[E, edge_dim]`` → ``[N, d']``.

    """
    values, kind = map_values(e, conv.lin.weight, conv.lin.bias)
    out: Tensor = conv.nn(relu_sum(x, values, kind, 1 + conv.eps, graph.edges))
    return out


def is_fusible_gine(conv: Any, x: Tensor, e: Tensor) -> bool:
    """Whether a conv is a ``GINEConv`` with a map for edges, as it comes, that nobody changed or listens to."""
    from torch_geometric.nn import GINEConv, Linear  # takes long to load; who has a conv of PyG has loaded it

    return (
        is_unchanged(conv, GINEConv)
        and is_unchanged(conv.lin, nn.Linear, Linear)
        and conv.lin.bias is not None
        and (conv.aggr, conv.flow, conv.node_dim, conv.explain) == ("add", "source_to_target", -2, None)
        and not any(hooks for name, hooks in vars(conv).items() if name.endswith("_hooks") and "state_dict" not in name)
        and fusible(x, e, conv.lin.weight, conv.lin.bias, conv.eps)
    )
