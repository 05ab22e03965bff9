"""Graphs of a packed set as PyTorch Geometric has them, gathered from its arrays."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index, rows_of
from lspe.data.packed.targets import without_unknown
from lspe.data.packed.tensors import GraphTensors

if TYPE_CHECKING:
    from torch_geometric.data import Batch, Data

    from lspe.data.packed.sets import PackedGraphs


def as_data(graphs: PackedGraphs, number: int) -> Data:
    """One graph of the whole set."""
    from torch_geometric.data import Data  # takes long to load

    rows = {
        "node": slice(int(graphs.node_ptr[number]), int(graphs.node_ptr[number + 1])),
        "edge": slice(int(graphs.edge_ptr[number]), int(graphs.edge_ptr[number + 1])),
        "graph": slice(number, number + 1),
    }
    data = Data()
    for name, level, column in graphs.attributes:
        if name == "edge_index":
            data.edge_index = as_tensor(np.stack([graphs.source[rows["edge"]], graphs.target[rows["edge"]]]))
        else:
            data[name] = _values(graphs, name, column[rows[level]].copy(), rows[level])
    if "x" not in graphs.node:
        data.num_nodes = rows["node"].stop - rows["node"].start
    return data


def as_batch(graphs: PackedGraphs, number: Index) -> Batch:
    """Some graphs of the whole set as one, without per-graph work."""
    attributes, num_nodes, begin = _gather(graphs, number)
    slices = {level: torch.from_numpy(one) for level, one in zip(("node", "edge", "graph"), begin, strict=True)}
    increments = dict.fromkeys((name for name, _, _ in graphs.attributes), torch.from_numpy(np.zeros_like(number)))
    increments["edge_index"] = torch.from_numpy(begin[0][:-1])
    internal = {
        "_num_graphs": len(number),
        "_slice_dict": {name: slices[level] for name, level, _ in graphs.attributes},
        "_inc_dict": increments,
    }
    if "x" not in graphs.node:
        internal["_num_nodes"] = num_nodes.tolist()
        attributes["num_nodes"] = int(begin[0][-1])
    attributes["batch"] = attributes.pop("batch")  # the last but one, as PyG has it
    attributes["ptr"] = slices["node"]

    # PyG's metaclass builds a class at each call, and its setters cost more than the arrays
    batch = type.__call__(_batch_class())
    batch._store._mapping.update(attributes)
    vars(batch._store).update(internal)
    return batch


def as_tensors(graphs: PackedGraphs, number: Index) -> GraphTensors:
    """The same tensors without PyG."""
    attributes, _, begin = _gather(graphs, number)
    levels = {name: level for name, level, _ in graphs.attributes} | {"batch": "node"}
    return GraphTensors(attributes, levels, int(begin[0][-1]), len(number))


def as_tensor(values: Array) -> Tensor:
    """Integers as an int64 tensor, floating point as float32; `values` must be memory of its own, not the file's."""
    if values.dtype.kind in "iu":
        return torch.from_numpy(values.astype(np.int64, copy=False))
    if values.dtype.kind == "f":
        return torch.from_numpy(values.astype(np.float32, copy=False))
    return torch.from_numpy(values)


def _gather(graphs: PackedGraphs, number: Index) -> tuple[dict[str, Any], Index, tuple[Index, Index, Index]]:
    """Every attribute of some graphs, the nodes of each, and where each one's nodes, edges and rows begin."""
    (nodes, edges), (num_nodes, num_edges), begin = rows_of(graphs.begins, number)
    rows = {"node": nodes, "edge": edges, "graph": number}
    attributes: dict[str, Any] = {}
    for name, level, column in graphs.attributes:
        if name == "edge_index":
            edge_index = np.empty((2, len(edges)), dtype=np.int64)
            offset = begin[0, :-1].repeat(num_edges)
            np.add(graphs.source.take(edges), offset, out=edge_index[0])
            np.add(graphs.target.take(edges), offset, out=edge_index[1])
            attributes[name] = torch.from_numpy(edge_index)
        else:
            attributes[name] = _values(graphs, name, column.take(rows[level], axis=0), rows[level])
    counting = np.arange(len(number) + 1)
    attributes["batch"] = torch.from_numpy(counting[:-1].repeat(num_nodes))
    return attributes, num_nodes, (begin[0], begin[1], counting)


def _values(graphs: PackedGraphs, name: str, values: Array, rows: Index | slice) -> Tensor:
    """A column of some rows as a tensor."""
    if name == "y" and graphs.known is not None:
        values = without_unknown(values, graphs.known[rows])
    return as_tensor(values)


@cache
def _batch_class() -> type[Batch]:
    """What PyG makes of ``Data`` when several become a ``Batch``."""
    from torch_geometric.data import Batch, Data  # takes long to load

    return type(Batch(_base_cls=Data))
