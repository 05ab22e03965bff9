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
from lspe.data.packed.container import Array
from lspe.data.packed.sets import PackedGraphs
from lspe.data.splits import Fractions, Splits, random_split
from lspe.data.words import TaskKind
from lspe.features import (
    OGB_ATOM_TABLE,
    OGB_BOND_TABLE,
    CategoricalFeatures,
    ContinuousFeatures,
    Features,
    NoFeatures,
    OGBFeatures,
)


def from_pyg(
    graphs: Sequence[Data] | str | os.PathLike[str],
    *,
    task: TaskKind | None = None,
    splits: Splits | None = None,
    fractions: Fractions = (0.8, 0.1, 0.1),
    seed: int = 0,
    name: str = "graphs",
) -> GraphData:
    """Graphs with ``y``, as a list of ``Data`` or a folder of ``.pt`` files, ready to learn from.

    Node and edge features say themselves what they are: floating point numbers are ``continuous``; whole
    numbers [N] and [E] are types (``categorical``; edge types begin at 1, 0 is kept for edges a network
    adds); [N, 9] and [E, 3] whole numbers are OGB's. Floating point ``y`` is regression (binary where it is
    0, 1 or NaN only), a whole number is a class. The ``y`` of a graph is a number or has shape [1, T], or [T]
    where that cannot be mistaken for labels of its nodes or edges.
    """
    if isinstance(graphs, (str, os.PathLike)):
        graphs = read_folder(graphs)
    if "y" not in _attributes_of(graphs):
        raise DataError("the graphs have no y, so there is nothing to learn; give each Data a y")
    _check_targets_are_of_graphs(graphs)
    packed, features = pack(graphs)
    packed, task, outputs = _with_targets(packed, task)
    labels = packed.y if task == "multiclass" and np.bincount(packed.y).min() > 1 else None
    return GraphData(
        name=name,
        task=task,
        num_outputs=outputs,
        task_names=("y",) if task == "multiclass" else tuple(f"y{number}" for number in range(outputs)),
        features=features,
        source="PyG Data",
        class_names=tuple(str(number) for number in range(outputs)) if task == "multiclass" else (),
        graphs=packed,
        splits=splits if splits is not None else random_split(len(packed), fractions, seed=seed, labels=labels),
    )


def pack(graphs: Sequence[Data]) -> tuple[PackedGraphs, Features]:
    """The graphs as a packed set in memory, in the form networks expect, and what their features are."""
    attributes = _attributes_of(graphs)
    level = {
        key: "node" if graphs[0].is_node_attr(key) else "edge" if graphs[0].is_edge_attr(key) else "graph"
        for key in attributes
    }
    level |= {key: known for key, known in (("x", "node"), ("edge_attr", "edge"), ("y", "graph")) if key in level}
    columns: dict[str, dict[str, Array]] = {"node": {}, "edge": {}, "graph": {}}
    for key in attributes:
        parts = [graph[key] for graph in graphs]
        if level[key] == "graph":
            parts = [part.reshape(1, -1) for part in parts]
        if len({part.shape[1:] for part in parts}) > 1 or len({part.dtype for part in parts}) > 1:
            raise DataError(f"attribute {key!r} has different shapes or types in different graphs")
        values = torch.cat(parts)
        columns[level[key]][key] = (values.float() if values.is_floating_point() else values).numpy()
    num_edges = [graph.num_edges for graph in graphs]
    features = _features(columns["node"], columns["edge"], sum(num_edges))
    packed = PackedGraphs.from_arrays(
        [graph.num_nodes for graph in graphs],
        num_edges,
        torch.cat([graph.edge_index.reshape(2, -1) for graph in graphs], dim=1).numpy(),
        node=columns["node"],
        edge=columns["edge"],
        graph=columns["graph"],
    )
    return packed, features


def _attributes_of(graphs: Sequence[Data]) -> list[str]:
    """The names of what stands on nodes, edges and graphs; graphs that lack some of it are refused."""
    if not len(graphs):
        raise DataError("there are no graphs")
    for number, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise DataError(f"graph {number} is a {type(graph).__name__}, not a torch_geometric.data.Data")
    attributes = [key for key in graphs[0].to_dict() if key not in ("edge_index", "num_nodes")]
    for number, graph in enumerate(graphs):
        _check(graph, number, attributes)
    return attributes


def _check(graph: Data, number: int, attributes: Sequence[str]) -> None:
    if graph.edge_index is None:
        raise DataError(f"graph {number} has no edge_index; a graph without edges has an empty one, [2, 0]")
    if "x" not in graph and "num_nodes" not in graph:
        raise DataError(f"graph {number} says nowhere how many nodes it has; give it x or num_nodes")
    missing = [key for key in attributes if key not in graph or not isinstance(graph[key], torch.Tensor)]
    if missing:
        raise DataError(f"graph {number} has no tensor {missing[0]!r}, which graph 0 has")


def _check_targets_are_of_graphs(graphs: Sequence[Data]) -> None:
    """Refuse a ``y`` that belongs to nodes or edges, or may do so, by its shapes over all graphs.

    One row per node (or per edge) in every graph tells labels of nodes (edges); in graphs of one node there is no
    difference.
    """
    shapes = [list(graph.y.shape) for graph in graphs]
    may_be_graph = [len(shape) < 2 or (len(shape) == 2 and shape[0] == 1) for shape in shapes]
    targets = [graph.y.numel() for graph in graphs]
    is_graph = all(may_be_graph) and len(set(targets)) == 1
    for what, counts in (
        ("node", [int(graph.num_nodes) for graph in graphs]),
        ("edge", [int(graph.num_edges) for graph in graphs]),
    ):
        fits = all(shape and shape[0] == count for shape, count in zip(shapes, counts, strict=True))
        if not fits or max(counts) < 2:
            continue
        number = int(np.argmax(counts))
        place = f"the y of graph {number} has shape {shapes[number]}"
        if is_graph:
            raise DataError(
                f"{place}, and all graphs have {counts[number]} {what}s: these may be {targets[number]} targets of the "
                f"graph or a label per {what}. Write targets of a graph as [1, T]: graph.y = graph.y.reshape(1, -1). "
                f"Labels of {what}s cannot be learned."
            )
        raise DataError(
            f"{place} and the graph has {counts[number]} {what}s: it is a label per {what}, and only targets of whole "
            "graphs can be learned. Give each graph a y of shape [1, T]."
        )
    if not is_graph:
        odd = next(i for i, fits in enumerate(may_be_graph) if not fits or targets[i] != targets[0])
        raise DataError(
            f"the y of graph {odd} has shape {shapes[odd]}{f', that of graph 0 {shapes[0]}' if odd else ''}: the "
            "targets of a graph have shape [1, T], with the same T in all graphs"
        )


def _features(node: dict[str, Array], edge: dict[str, Array], edges: int) -> Features:
    """What ``x`` and ``edge_attr`` are; puts both into the form networks expect."""
    x, edge_attr = node.get("x"), edge.get("edge_attr")
    if x is None:
        if edge_attr is not None:
            raise DataError("the edges have edge_attr but the nodes no x; give each node one, for instance 1.0")
        return NoFeatures()
    if x.dtype.kind == "f":
        edge_attr = np.ones((edges, 1), dtype=np.float32) if edge_attr is None else edge_attr.astype(np.float32)
        node["x"], edge["edge_attr"] = x.reshape(len(x), -1), edge_attr.reshape(len(edge_attr), -1)
        return ContinuousFeatures(node_features=node["x"].shape[1], edge_features=edge["edge_attr"].shape[1])
    if edge_attr is None:
        edge_attr = np.ones(edges, dtype=np.int64)
    if edge_attr.dtype.kind not in "iu":
        raise DataError("x holds whole numbers and edge_attr does not; make both types (integers) or both numbers")
    if x.shape[1:] == (9,) and edge_attr.shape[1:] == (3,):
        if (x < 0).any() or (x >= OGB_ATOM_TABLE).any() or (edge_attr >= OGB_BOND_TABLE).any():
            raise DataError("x is [N, 9] and edge_attr [E, 3], but they are not OGB's atom and bond features")
        return OGBFeatures()
    if x.size != len(x) or edge_attr.size != len(edge_attr):
        raise DataError(f"x has {x.shape[1]} whole numbers a node; give one type per node, or floating point features")
    node["x"], edge["edge_attr"] = x.reshape(-1), edge_attr.reshape(-1)
    if x.min(initial=0) < 0 or edge_attr.min(initial=1) < 1:
        raise DataError("node types begin at 0 and edge types at 1 (0 is kept for edges a network adds)")
    return CategoricalFeatures(node_types=int(x.max()) + 1, edge_types=int(edge_attr.max(initial=1)) + 1)


def _with_targets(packed: PackedGraphs, task: TaskKind | None) -> tuple[PackedGraphs, TaskKind, int]:
    """The set with ``y`` in the form of its task, the task, and the number of outputs."""
    y = packed.graph["y"]
    values = y[~np.isnan(y)] if y.dtype.kind == "f" else y
    if not len(values) or np.isinf(values).any():
        raise DataError("y has no values, or infinite ones")
    if task is None:
        if y.dtype.kind in "iu" and y.shape[1] == 1 and values.max() > 1:
            task = "multiclass"
        else:
            task = "binary" if np.isin(values, (0, 1)).all() else "regression"
    if task == "multiclass":
        if y.shape[1] != 1 or y.dtype.kind not in "iu" or y.min() < 0:
            raise DataError("a multi-class y is one whole number a graph, from 0 on")
        y = y[:, 0].astype(np.int64)
        outputs = int(y.max()) + 1
    else:
        if task == "binary" and not np.isin(values, (0, 1)).all():
            raise DataError("a binary y is 0, 1 or NaN")
        if task == "regression" and np.isnan(y.astype(np.float32)).all(axis=1).any():
            raise DataError("a graph has no target at all: its y is NaN; leave such graphs out")
        y, outputs = y.astype(np.float32), y.shape[1]
    return replace(packed, graph={**packed.graph, "y": y}), task, outputs


def read_folder(folder: str | os.PathLike[str]) -> list[Data]:
    """Every ``Data`` (or list of them) in the ``.pt`` files of a folder, in the order of the files' names.

    Only tensors and PyG's ``Data`` are read; a file that asks for anything else is refused, never unpickled.
    """
    files = sorted(Path(folder).glob("*.pt"))
    if not files:
        raise DataError(f"{folder} holds no .pt files; save graphs there with torch.save(data, 'name.pt')")
    graphs: list[Data] = []
    for file in files:
        with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
            try:
                content = torch.load(file, weights_only=True)
            except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
                raise DataError(
                    f"{file} is damaged or holds more than PyG Data, and is not read: {str(error).splitlines()[0]}"
                ) from None
        graphs += [content] if isinstance(content, Data) else list(content)
    return graphs
