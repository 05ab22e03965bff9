"""What ``GINEConv`` of PyTorch Geometric computes, with the fused sum of messages."""

from typing import Any

from torch import Tensor, nn

from lspe.nn.topology import Topology
from lspe.ops import fusible
from lspe.ops.relu_sum import relu_sum


def gine(conv: Any, x: Tensor, e: Tensor, graph: Topology) -> Tensor:
    r""":math:`f\big((1 + \epsilon) x_i + \sum_{j \in \mathcal{N}_i} \mathrm{ReLU}(x_j + W e_{ij} + b)\big)`.

    Shapes:
        x ``[N, d]``, e ``[E, edge_dim]`` → ``[N, d']``.

    """
    total = relu_sum(x, e, conv.lin.weight, conv.lin.bias, graph.edges)
    out: Tensor = conv.nn(total + (1 + conv.eps) * x)
    return out


def is_fusible_gine(conv: Any, x: Tensor, e: Tensor) -> bool:
    """Whether a conv is a ``GINEConv`` with a map for edges, as it comes, that nobody changed or listens to."""
    from torch_geometric.nn import GINEConv, Linear  # takes long to load; who has a conv of PyG has loaded it

    return (
        type(conv) is GINEConv
        and type(conv.lin) in (nn.Linear, Linear)
        and conv.lin.bias is not None
        and (conv.aggr, conv.flow, conv.node_dim, conv.explain) == ("add", "source_to_target", -2, None)
        and all(_is_unchanged(module) for module in (conv, conv.lin))
        and fusible(x, e, conv.lin.weight, conv.lin.bias)
    )


def _is_unchanged(module: nn.Module) -> bool:
    hooks = (value for name, value in vars(module).items() if name.endswith("_hooks") and "state_dict" not in name)
    return not any(hooks) and vars(module).keys().isdisjoint(("forward", "message", "aggregate", "update"))
