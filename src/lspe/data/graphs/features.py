"""What stands on the nodes and edges of a person's graphs, found out from the kind of the numbers."""

from __future__ import annotations

import numpy as np

from lspe.data.errors import DataError
from lspe.data.packed.container import Array
from lspe.features import (
    OGB_ATOM_TABLE,
    OGB_BOND_TABLE,
    CategoricalFeatures,
    ContinuousFeatures,
    Features,
    MixedFeatures,
    NoFeatures,
    OGBFeatures,
)

Columns = dict[str, Array]


def find_features(node: Columns, edge: Columns, edges: int) -> Features:
    """What the columns of nodes and edges are; puts them into the form networks expect.

    ``x`` and ``edge_attr`` are numbers where they are floating point and types where they are whole;
    ``node_type`` and ``edge_type`` are types beside them.
    """
    x, edge_attr = _without_bool(node, "x"), _without_bool(edge, "edge_attr")
    if "node_type" in node or "edge_type" in edge:
        return _mixed(node, edge)
    if x is None:
        return NoFeatures() if edge_attr is None else _mixed(node, edge)
    if edge_attr is not None and (x.dtype.kind == "f") != (edge_attr.dtype.kind == "f"):
        return _mixed(node, edge)
    if x.dtype.kind == "f":
        edge_attr = np.ones((edges, 1), dtype=np.float32) if edge_attr is None else edge_attr
        node["x"], edge["edge_attr"] = _two_axes(x), _two_axes(edge_attr)
        return ContinuousFeatures(node_features=node["x"].shape[1], edge_features=edge["edge_attr"].shape[1])
    if edge_attr is None:
        edge_attr = np.ones(edges, dtype=np.int64)
    if x.shape[1:] == (9,) and edge_attr.shape[1:] == (3,):
        if (x < 0).any() or (x >= OGB_ATOM_TABLE).any() or (edge_attr >= OGB_BOND_TABLE).any():
            raise DataError("x is [N, 9] and edge_attr [E, 3], but they are not OGB's atom and bond features")
        return OGBFeatures()
    if x.size != len(x) or edge_attr.size != len(edge_attr):
        edge["edge_attr"] = edge_attr
        return _mixed(node, edge)
    node["x"], edge["edge_attr"] = x.reshape(-1), edge_attr.reshape(-1)
    if x.min(initial=0) < 0 or edge_attr.min(initial=1) < 1:
        raise DataError("node types begin at 0 and edge types at 1 (0 is kept for edges a network adds)")
    return CategoricalFeatures(node_types=int(x.max()) + 1, edge_types=int(edge_attr.max(initial=1)) + 1)


def _mixed(node: Columns, edge: Columns) -> MixedFeatures:
    """Types and numbers side by side: the numbers under PyG's usual names, the types as columns of their own."""
    node_types, node_features = _divide(node, "x", "node_type", first=0)
    edge_types, edge_features = _divide(edge, "edge_attr", "edge_type", first=1)
    return MixedFeatures(
        node_types=node_types, node_features=node_features, edge_types=edge_types, edge_features=edge_features
    )


def _divide(columns: Columns, values: str, types: str, first: int) -> tuple[tuple[int, ...], int]:
    """Put types [R, C] under one name and numbers [R, F] under the other: the size of each table, and F.

    Types are numbered from `first` on; what is below is kept for edges that a network adds.
    """
    all_types: list[Array] = []
    given = columns.pop(types, None)
    if given is not None and given.dtype.kind == "f":
        raise DataError(f"{types} holds floating point numbers; types are whole numbers from 0 on")
    numbers = columns.pop(values, None)
    for column in (numbers, given):
        if column is not None and column.dtype.kind != "f":
            all_types.append(_two_axes(column))
    if numbers is not None and numbers.dtype.kind == "f":
        columns[values] = _two_axes(numbers)
    if not all_types:
        return (), columns[values].shape[1] if values in columns else 0
    together = np.concatenate(all_types, axis=1).astype(np.int64)
    if together.min(initial=0) < 0:
        raise DataError(f"{types if numbers is None else values} has a type below 0; types are numbered from 0 on")
    columns[types] = together + first
    sizes = tuple(int(size) + 1 for size in columns[types].max(axis=0, initial=first))
    return sizes, columns[values].shape[1] if values in columns else 0


def _two_axes(column: Array) -> Array:
    return column.reshape(len(column), -1)


def _without_bool(columns: Columns, name: str) -> Array | None:
    """True and false are types 1 and 0."""
    if name in columns and columns[name].dtype.kind == "b":
        columns[name] = columns[name].astype(np.int64)
    return columns.get(name)
