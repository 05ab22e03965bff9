"""Layers one after the other."""

from collections.abc import Iterable, Iterator

from torch import Tensor, nn

from lspe.nn.gated_gcn import GatedGCN, fused_layers
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.ops.fused.gate import MOST_LAYERS


def run_layers(
    layers: Iterable[nn.Module], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Layers one after the other; GatedGCN layers that follow each other are one operator where they can be."""
    for together in _together(layers):
        gated = [layer for layer in together if isinstance(layer, GatedGCN)]
        if len(gated) > 1:
            dim, lspe = gated[0].dim, gated[0].lspe
            check_streams(h, p, e, graph, dim=dim, edge_dim=dim, lspe=lspe)
            if all(layer._is_fusible(h, p, e) for layer in gated):
                h, p, e = fused_layers(gated, h, p, e, graph)
                continue
        for layer in together:
            h, p, e = layer(h, p, e, graph)
    return h, p, e


def _together(layers: Iterable[nn.Module]) -> Iterator[list[nn.Module]]:
    """Runs of GatedGCN layers of one kind that nobody listens to; every other layer is alone."""
    run: list[nn.Module] = []
    kind: object = None
    for layer in layers:
        hooks = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks
        listened_to = bool(hooks) or "forward" in layer.__dict__
        own = object() if type(layer) is not GatedGCN or listened_to else (layer.dim, layer.lspe)
        if run and (own != kind or len(run) == MOST_LAYERS):
            yield run
            run = []
        run.append(layer)
        kind = own
    if run:
        yield run
