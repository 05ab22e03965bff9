"""A part of the nodes and edges of a packed set, as a batch of graphs of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from lspe.data.packed.assembly import as_tensor
from lspe.data.packed.pointers import Index
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.targets import without_unknown

if TYPE_CHECKING:
    from torch_geometric.data import Batch


def part_of(graphs: PackedGraphs, nodes: Index, edges: Index, known: NDArray[np.bool_]) -> Batch:
    r"""The nodes and edges in these rows of the whole set, with targets only where they are `known`.

    The graphs of the batch are those that have a node among them. Every edge ends and begins at one of the nodes.

    Shapes:
        - **nodes:** :math:`[n]`, ascending
        - **edges:** :math:`[m]`
        - **known:** :math:`[n]`, of targets of nodes
    """
    from torch_geometric.data import Batch, Data  # takes long to load

    number, of_node = np.unique(np.searchsorted(graphs.node_ptr, nodes, side="right") - 1, return_inverse=True)
    first_node = graphs.node_ptr[np.searchsorted(graphs.edge_ptr, edges, side="right") - 1]
    ends = [np.searchsorted(nodes, column[edges] + first_node) for column in (graphs.source, graphs.target)]
    rows = {"node": nodes, "edge": edges, "graph": number}
    values: dict[str, Any] = {"edge_index": torch.from_numpy(np.stack(ends))}
    for level, chosen in rows.items():
        for name, column in getattr(graphs, level).items():
            some = column.take(chosen, axis=0)
            values[name] = as_tensor(without_unknown(some, known) if (level, name) == ("node", "y") else some)
    counts = np.bincount(of_node, minlength=len(number))
    batch = Batch(_base_cls=Data, **values)
    batch.num_nodes = len(nodes)
    batch.batch = torch.from_numpy(of_node)
    batch.ptr = torch.from_numpy(np.concatenate([[0], counts.cumsum()]))
    batch._num_graphs = len(number)
    return batch
