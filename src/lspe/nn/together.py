"""Layers one after the other; those of one kind that follow each other are one operator where they can be."""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor, nn

from lspe.nn.gated_gcn import GatedGCN
from lspe.nn.streams import check_streams
from lspe.nn.topology import Topology
from lspe.nn.tower_pna import TowerPNA
from lspe.ops.fused import gate, tower_layers

JOINED = (GatedGCN, TowerPNA)
"""Whose layers of one ``kind()`` are one operator: ``run(layers, h, p, e, graph)``, where each ``is_fusible``."""
MOST_LAYERS = min(gate.MOST_LAYERS, tower_layers.MOST_LAYERS)


def run_layers(
    layers: Iterable[nn.Module], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology
) -> tuple[Tensor, Tensor | None, Tensor]:
    """What the layers make of h, p and e."""
    for together in _together(layers):
        one = together[0]
        if len(together) > 1:
            check_streams(h, p, e, graph, dim=one.dim, edge_dim=one.edge_dim, lspe=one.lspe)
            if all(layer.is_fusible(h, p, e) for layer in together):
                h, p, e = type(one).run(together, h, p, e, graph)
                continue
        for layer in together:
            h, p, e = layer(h, p, e, graph)
    return h, p, e


def _together(layers: Iterable[nn.Module]) -> Iterator[list[Any]]:
    """Runs of layers of one kind that nobody listens to; every other layer is alone."""
    run: list[Any] = []
    kind: object = None
    for layer in layers:
        hooks = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks
        listened_to = bool(hooks) or "forward" in layer.__dict__
        own: object = object()
        if type(layer) in JOINED and not listened_to:
            own = type(layer), *layer.kind()  # type: ignore[operator]
        if run and (own != kind or len(run) == MOST_LAYERS):
            yield run
            run = []
        run.append(layer)
        kind = own
    if run:
        yield run
