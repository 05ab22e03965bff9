"""Which pairs of nodes are predicted: those of a table, or the likeliest of a graph that are not joined yet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from lspe.data import DataError, TableChunk, iter_table_chunks
from lspe.data.graphs.links import check_pairs, without_questions
from lspe.data.packed.unjoined import is_among, pair_codes
from lspe.errors import UserError
from lspe.nn.readout import of_pairs
from lspe.predict.graphs import pack_graphs
from lspe.predict.member import GraphsWithEncodings, Member

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lspe.predict.predictor import Predictor

Pairs = NDArray[np.int64]
_AT_ONCE = 2**18
MOST_NODES = 50_000
"""All pairs of so many nodes are looked at within the hour."""


def asking_for(graph: Data, pairs: Pairs) -> Data:
    """The graph with the pairs [2, P] that are asked for."""
    values = without_questions(graph).to_dict()
    from torch_geometric.data import Data  # takes long to load

    return Data(**values, edge_label_index=torch.from_numpy(pairs))


def read_pairs(path: str | os.PathLike[str], graphs: Sequence[Data]) -> list[Pairs]:
    """The pairs [2, P] of each graph in a table with the columns ``source``, ``target`` and, of several, ``graph``."""
    found: list[list[Pairs]] = [[] for _ in graphs]
    for chunk in iter_table_chunks(path):
        needed = ["source", "target"]
        if len(graphs) > 1 or "graph" in chunk.columns:
            needed.append("graph")
        for name in needed:
            if name not in chunk.columns:
                raise DataError(
                    f"{path} has no column {name!r}: pairs of {len(graphs)} graphs have {', '.join(needed)}"
                )
        source, target, *rest = (_whole_numbers(chunk, name, path) for name in needed)
        graph = rest[0] if rest else np.zeros_like(source)
        strange = (graph < 0) | (graph >= len(graphs))
        if strange.any():
            first = int(strange.argmax())
            raise DataError(
                f"{path}, row {chunk.numbers[first]}: there is no graph {graph[first]}; {len(graphs)} graphs are "
                "numbered from 0"
            )
        for number in np.unique(graph).tolist():
            rows = np.flatnonzero(graph == number)
            pairs = np.stack([source[rows], target[rows]])
            numbers = [chunk.numbers[row] for row in rows.tolist()]
            check_pairs(pairs, int(graphs[number].num_nodes), partial(_row, path, numbers))
            found[number].append(pairs)
    return [np.concatenate([np.zeros((2, 0), dtype=np.int64), *pairs], axis=1) for pairs in found]


def _row(path: str | os.PathLike[str], numbers: Sequence[int], pair: int) -> str:
    return f"{path}, row {numbers[pair]}"


def _whole_numbers(chunk: TableChunk, name: str, path: str | os.PathLike[str]) -> Pairs:
    values = chunk.column(name)
    for number, value in enumerate(values):
        if not value.strip().isdecimal():
            what = "graph" if name == "graph" else "node"
            raise DataError(f"{path}, row {chunk.numbers[number]}: {name} is {value!r}, not the number of a {what}")
    return np.array([int(value) for value in values], dtype=np.int64)


@torch.inference_mode()
def likeliest_pairs(predictor: Predictor, graph: Data, top: int) -> tuple[Pairs, NDArray[np.float64]]:
    """The `top` unjoined pairs [2, P] of a graph that are likeliest to be joined, the best first, and how likely.

    All pairs are looked at, a few hundred thousand at a time.
    """
    predictor.check_level("link", "looking for links takes")
    nodes = int(graph.num_nodes)
    if nodes > MOST_NODES:
        raise UserError(
            f"the graph has {nodes:,} nodes, and all pairs of them are too many to look at (at most {MOST_NODES:,} "
            "nodes): name the pairs to predict, --pairs pairs.csv"
        )
    asked = asking_for(graph, np.zeros((2, 0), dtype=np.int64))
    packed = pack_graphs([asked], predictor.features, predictor.members[0].name, "link")
    encoded = GraphsWithEncodings(packed)
    vectors = [torch.from_numpy(member.apply(encoded)[1].node) for member in predictor.members]
    ptr, ends = packed.node_ptr, np.stack([packed.source, packed.target])
    joined = np.unique(pair_codes(ptr, np.zeros(ends.shape[1], dtype=np.int64), ends))
    best, likely = np.zeros((2, 0), dtype=np.int64), np.zeros(0)
    for pairs in _all_pairs(nodes):
        pairs = pairs[:, ~is_among(pair_codes(ptr, np.zeros(pairs.shape[1], dtype=np.int64), pairs), joined)]
        each = [_probability(member, h, pairs) for member, h in zip(predictor.members, vectors, strict=True)]
        likely = np.concatenate([likely, np.tensordot(predictor.weights, np.stack(each), axes=1)])
        best = np.concatenate([best, pairs], axis=1)
        order = np.argsort(-likely, kind="stable")[:top]
        best, likely = best[:, order], likely[order]
    return best, likely


def _probability(member: Member, h: torch.Tensor, pairs: Pairs) -> NDArray[np.float64]:
    head = member.network.head
    output = head(of_pairs(h, torch.from_numpy(pairs)).to(next(head.parameters()).device))
    probability: NDArray[np.float64] = member.objective.predict(output.double()).cpu().numpy()[:, 0]
    return probability


def _all_pairs(nodes: int) -> Iterator[Pairs]:
    """Every pair of two nodes once, the smaller number first, so many of them at once."""
    rows = max(1, _AT_ONCE // max(nodes, 1))
    for begin in range(0, nodes, rows):
        low, high = np.meshgrid(np.arange(begin, min(begin + rows, nodes)), np.arange(begin, nodes), indexing="ij")
        kept = low < high
        yield np.stack([low[kept], high[kept]])
