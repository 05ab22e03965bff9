"""Layers one after the other; those of one kind that follow each other are one operator where they can be."""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor, nn

from lspe.nn.gated_gcn import GatedGCN
from lspe.nn.graphit import GraphiT
from lspe.nn.san import SAN
from lspe.nn.topology import Topology
from lspe.nn.tower_pna import TowerPNA
from lspe.ops.choice import is_listened_to
from lspe.ops.fused.layout import MOST_LAYERS

JOINED = (GatedGCN, TowerPNA, SAN, GraphiT)
"""Whose layers of one ``kind()`` are one operator, ``run(layers, h, p, e, graph)``, where they ``are_fusible``."""


def run_layers(
    layers: Iterable[nn.Module], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology
) -> tuple[Tensor, Tensor | None, Tensor]:
    """What the layers make of h, p and e."""
    for together in _together(layers):
        if len(together) > 1:
            together[0].check(h, p, e, graph)
            kind = type(together[0])
            if kind.are_fusible(together, h, p, e, graph):
                h, p, e = kind.run(together, h, p, e, graph)
                continue
        for layer in together:
            h, p, e = layer(h, p, e, graph)
    return h, p, e


def _together(layers: Iterable[nn.Module]) -> Iterator[list[Any]]:
    """Runs of layers of one kind that nobody listens to; every other layer is alone."""
    run: list[Any] = []
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


def _kind_of(layer: Any) -> object:
    """What layers that may be computed at once have in common; of any other layer, what no other one has."""
    if type(layer) not in JOINED or is_listened_to(layer) or "forward" in layer.__dict__:
        return object()
    return type(layer), *layer.kind()
