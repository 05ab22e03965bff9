"""PyG graphs on their way to the networks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lspe.data import DataError, PackedGraphs
from lspe.data.words import Level
from lspe.features import Features, describe, table_sizes

if TYPE_CHECKING:
    from torch_geometric.data import Data


def is_graph(value: Any) -> bool:
    """Whether it is a PyG ``Data``; whoever has one has loaded PyG, which nobody else waits for."""
    pyg = sys.modules.get("torch_geometric.data")
    return pyg is not None and isinstance(value, pyg.Data)


def pack_graphs(graphs: Sequence[Data], features: Features, name: str, level: Level = "graph") -> PackedGraphs:
    """PyG graphs in the form of the networks; refused where they carry other features than those trained on."""
    from lspe.data.graphs.links import with_asked_pairs, without_questions
    from lspe.data.graphs.pyg import pack

    packed, given = pack([without_questions(graph) for graph in graphs], keep_places=level == "edge")
    if not _fits(given, features):
        raise DataError(f"{name} was trained on {describe(features)}, but the graphs have {describe(given)}")
    return with_asked_pairs(packed, graphs) if level == "link" else packed


def _fits(given: Features, wanted: Features) -> bool:
    if given.kind == wanted.kind == "categorical":
        return given.node_types <= wanted.node_types and given.edge_types <= wanted.edge_types
    if given.kind == wanted.kind == "mixed":
        return (
            (given.node_features, given.edge_features) == (wanted.node_features, wanted.edge_features)
            and _within(given.node_types, wanted.node_types)
            and _within(given.edge_types, wanted.edge_types)
        )
    return given.kind == wanted.kind and table_sizes(given) == table_sizes(wanted)


def _within(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether every column's types have an entry in its table."""
    return len(given) == len(wanted) and all(one <= other for one, other in zip(given, wanted, strict=True))
