"""Layers one after the other, those of one kind as one operator."""

from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor, nn

from lspe.nn import full_graph, gated_gcn
from lspe.nn.full_graph import FullGraphLayer
from lspe.nn.gated_gcn import GatedGCN
from lspe.nn.graphit import GraphiT
from lspe.nn.san import SAN
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.ops.fused.gate import MOST_LAYERS

Streams = tuple[Tensor, Tensor | None, Tensor]


def run_layers(layers: Iterable[nn.Module], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> Streams:
    """Layers one after the other; those of one kind that follow each other are one operator where they can be."""
    for together in _together(layers):
        found = _at_once(together, h, p, e, graph) if len(together) > 1 else None
        if found is not None:
            h, p, e = found
            continue
        for layer in together:
            h, p, e = layer(h, p, e, graph)
    return h, p, e


def _at_once(layers: Sequence[nn.Module], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> Streams | None:
    """What layers of one kind give as one operator; ``None`` where they are to be called one by one."""
    gated = [layer for layer in layers if isinstance(layer, GatedGCN)]
    if gated:
        dim, lspe = gated[0].dim, gated[0].lspe
        check_streams(h, p, e, graph, dim=dim, edge_dim=dim, lspe=lspe)
        fusible = all(layer.is_fusible(h, p, e) for layer in gated)
        return gated_gcn.fused_layers(gated, h, p, e, graph) if fusible else None
    full = [layer for layer in layers if isinstance(layer, FullGraphLayer)]
    full[0].check(h, p, e, graph)
    factors = [layer.pair_factors(graph, h) for layer in full]
    fusible = all(layer.is_fusible(h, p, e, graph, given) for layer, given in zip(full, factors, strict=True))
    return full_graph.fused_layers(full, h, p, e, graph, factors) if fusible else None


def _together(layers: Iterable[nn.Module]) -> Iterator[list[nn.Module]]:
    """Runs of layers of one kind that nobody listens to; every other layer is alone."""
    run: list[nn.Module] = []
    kind: object = None
    for layer in layers:
        own = _kind_of(layer)
        if run and (own != kind or len(run) == MOST_LAYERS):
            yield run
            run = []
        run.append(layer)
        kind = own
    if run:
        yield run


def _kind_of(layer: nn.Module) -> object:
    """What layers that may be computed at once have in common; of any other layer, what no other one has."""
    hooks = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks
    if hooks or "forward" in layer.__dict__:
        return object()
    if type(layer) is GatedGCN:
        return GatedGCN, layer.dim, layer.lspe
    if type(layer) in (SAN, GraphiT) and isinstance(layer, FullGraphLayer):
        return FullGraphLayer, layer.dim, layer.heads, layer.lspe
    return object()
