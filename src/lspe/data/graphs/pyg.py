"""Graphs that are PyG ``Data`` already: a list of them, or a folder of saved ones."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from lspe.data.errors import DataError
from lspe.data.graphdata import GraphData
from lspe.data.graphs.division import divide
from lspe.data.graphs.features import find_features
from lspe.data.graphs.targets import MASKS, find_level, read_targets
from lspe.data.packed.container import Array
from lspe.data.packed.sets import ColumnLevel, PackedGraphs
from lspe.data.splits import Fractions, Splits
from lspe.data.words import Level, TaskKind
from lspe.features import Features

CLASSES = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
"""What files of PyG's graphs are made of."""
_NEEDED = ("x", "edge_attr", "y")


def from_pyg(
    graphs: Data | Sequence[Data] | str | os.PathLike[str],
    *,
    level: Level | None = None,
    task: TaskKind | None = None,
    splits: Splits | None = None,
    fractions: Fractions = (0.8, 0.1, 0.1),
    folds: int | None = None,
    seed: int = 0,
    name: str = "graphs",
) -> GraphData:
    """Graphs with ``y``, as ``Data``, a list of them or a folder of ``.pt`` files, ready to learn from.

    Node and edge features say themselves what they are: floating point numbers are ``continuous``; whole
    numbers [N] and [E] are types (``categorical``; edge types begin at 1, 0 is kept for edges a network
    adds); [N, 9] and [E, 3] whole numbers are OGB's. Types of nodes with numbers of edges or the other way round,
    several columns of types, and types beside numbers (``node_type`` beside ``x``, ``edge_type`` beside ``edge_attr``)
    are ``mixed``. Floating point ``y`` is regression (binary where it is 0, 1 or NaN only), a whole number is a class.

    The ``y`` of a graph is a number or has shape [1, T], or [T] where that cannot be mistaken for labels of its nodes
    or edges. The ``y`` of nodes has shape [N] or [N, T], that of edges [E] or [E, T]; where there is no label it is
    NaN, or class -1. Where the shapes fit several levels, `level` says which it is.

    Several graphs are divided at random into training, validation and test graphs. Of a single one, the labelled nodes
    or edges are; where these have ``train_mask``, ``val_mask`` and ``test_mask`` (a row each, and F columns for F
    folds), as these say. Every part then sees the whole graph, and only its own labels. `splits` numbers the graphs of
    each part itself, or the nodes or edges of a single graph; `folds` is the number of folds for cross-validation.

    With `level` ``link`` there is no ``y``: a part of the edges is hidden, and which pairs of nodes are joined is to be
    learned from the others (:func:`~lspe.data.graphs.links.link_data`).
    """
    if isinstance(graphs, (str, os.PathLike)):
        graphs = read_folder(graphs)
    graphs = [graphs] if isinstance(graphs, Data) else graphs
    if level == "link":
        from lspe.data.graphs.links import link_data

        if splits is not None or folds is not None:
            raise DataError(
                "of links, edges are divided and not graphs, once: leave out parts and folds, or give each graph "
                "train_mask, val_mask and test_mask, which say of each edge what it is for"
            )
        if task not in (None, "binary"):
            raise DataError(f"whether two nodes are joined is a binary task, not {task}: leave the task out")
        return link_data(graphs, fractions=fractions, seed=seed, name=name)
    if "y" not in attributes_of(graphs):
        raise DataError(
            "the graphs have no y, so there is nothing to learn; give each Data a y, or say level='link' "
            "(--level link) to learn which nodes are joined"
        )
    level = find_level(graphs, level)
    packed, features = pack(graphs, level)
    y, task, outputs = read_targets(getattr(packed, level)["y"], level, task)
    masks = {key: column for key, column in getattr(packed, level).items() if key in MASKS and level != "graph"}
    packed = _with_targets(packed, level, y)
    divided, divisions = divide(packed, level, task, masks, splits, fractions=fractions, folds=folds, seed=seed)
    return GraphData(
        name=name,
        level=level,
        divided=divided,
        task=task,
        num_outputs=outputs,
        task_names=("y",) if task == "multiclass" else tuple(f"y{number}" for number in range(outputs)),
        features=features,
        source="PyG Data",
        class_names=tuple(str(number) for number in range(outputs)) if task == "multiclass" else (),
        graphs=packed,
        splits=divisions[0] if len(divisions) == 1 else {},
        folds=divisions if len(divisions) > 1 else [],
    )


def _with_targets(packed: PackedGraphs, level: Level, y: Array) -> PackedGraphs:
    """The set with targets in the form of their task, and without the masks, which splits say now."""
    if level == "graph":
        return replace(packed, graph={**packed.graph, "y": y})
    columns = {name: column for name, column in getattr(packed, level).items() if name not in MASKS}
    if level == "node":
        return replace(packed, node={**columns, "y": y})
    return replace(packed, edge={**columns, "y": y})


def pack(
    graphs: Sequence[Data], level: Level | None = None, *, keep_places: bool = False
) -> tuple[PackedGraphs, Features]:
    """The graphs as a packed set in memory, in the form networks expect, and what their features are.

    `level` says what ``y`` belongs to; without it ``y`` and the masks of parts are left out. A packed set has edges in
    an order of its own; `keep_places` adds a column ``given_place`` that says where each one stood in its graph.
    """
    attributes = [key for key in attributes_of(graphs) if level is not None or key not in ("y", *MASKS)]
    levels = levels_of(graphs, attributes, level)
    columns: dict[str, dict[str, Array]] = {"node": {}, "edge": {}, "graph": {}}
    for key in attributes:
        parts = [graph[key] for graph in graphs]
        if levels[key] == "graph":
            parts = [part.reshape(1, -1) for part in parts]
        if len({part.shape[1:] for part in parts}) > 1 or len({part.dtype for part in parts}) > 1:
            raise DataError(f"attribute {key!r} has different shapes or types in different graphs")
        values = torch.cat(parts)
        columns[levels[key]][key] = (values.float() if values.is_floating_point() else values).numpy()
    num_edges = [graph.num_edges for graph in graphs]
    if keep_places or level == "edge":
        columns["edge"]["given_place"] = np.concatenate([np.arange(count) for count in num_edges])
    features = find_features(columns["node"], columns["edge"], sum(num_edges))
    packed = PackedGraphs.from_arrays(
        [graph.num_nodes for graph in graphs],
        num_edges,
        torch.cat([graph.edge_index.reshape(2, -1) for graph in graphs], dim=1).numpy(),
        node=columns["node"],
        edge=columns["edge"],
        graph=columns["graph"],
    )
    return packed, features


def levels_of(graphs: Sequence[Data], attributes: Sequence[str], level: Level | None) -> dict[str, ColumnLevel]:
    """What each attribute belongs to; `level` is that of ``y`` and of the masks that divide targets.

    Of links, which have no ``y``, masks divide the edges.
    """
    known: dict[str, ColumnLevel] = {"x": "node", "node_type": "node", "edge_attr": "edge", "edge_type": "edge"}
    if level == "link":
        known |= dict.fromkeys(MASKS, "edge")
    elif level is not None:
        known["y"] = level
        known |= dict.fromkeys(MASKS, level) if level != "graph" else {}
    first = graphs[0]
    return {
        key: known.get(key) or ("node" if first.is_node_attr(key) else "edge" if first.is_edge_attr(key) else "graph")
        for key in attributes
    }


def attributes_of(graphs: Sequence[Data]) -> list[str]:
    """The names of what stands on nodes, edges and graphs; graphs that lack some of it are refused.

    What is no tensor, such as a name, is left out.
    """
    if not len(graphs):
        raise DataError("there are no graphs")
    for number, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise DataError(f"graph {number} is a {type(graph).__name__}, not a torch_geometric.data.Data")
    attributes = [
        key
        for key, value in graphs[0].to_dict().items()
        if key not in ("edge_index", "num_nodes") and (key in _NEEDED or isinstance(value, torch.Tensor))
    ]
    for number, graph in enumerate(graphs):
        _check(graph, number, attributes)
    return attributes


def _check(graph: Data, number: int, attributes: Sequence[str]) -> None:
    if graph.edge_index is None:
        raise DataError(f"graph {number} has no edge_index; a graph without edges has an empty one, [2, 0]")
    if not any(name in graph for name in ("x", "node_type", "num_nodes")):
        raise DataError(f"graph {number} says nowhere how many nodes it has; give it x or num_nodes")
    missing = [key for key in attributes if key not in graph or not isinstance(graph[key], torch.Tensor)]
    if missing:
        raise DataError(f"graph {number} has no tensor {missing[0]!r}, which graph 0 has")


def read_folder(folder: str | os.PathLike[str]) -> list[Data]:
    """Every ``Data`` (or list of them) in the ``.pt`` files of a folder, in the order of the files' names.

    Only tensors and PyG's ``Data`` are read; a file that asks for anything else is refused, never unpickled.
    """
    files = sorted(Path(folder).glob("*.pt"))
    if not files:
        raise DataError(f"{folder} holds no .pt files; save graphs there with torch.save(data, 'name.pt')")
    graphs: list[Data] = []
    for file in files:
        with torch.serialization.safe_globals(CLASSES):
            try:
                content = torch.load(file, weights_only=True)
            except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
                raise DataError(
                    f"{file} is damaged or holds more than PyG Data, and is not read: {str(error).splitlines()[0]}"
                ) from None
        graphs += [content] if isinstance(content, Data) else list(content)
    return graphs
