"""Sets of graphs of which it is asked which pairs of nodes are joined."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lspe.data.packed.container import Array, ArrayFile
from lspe.data.packed.pointers import Index, pointers, rows_of
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.unjoined import draw_unjoined, pair_codes

if TYPE_CHECKING:
    from torch_geometric.data import Batch, Data

_DRAWS = 1
"""Tells the numbers that pairs are drawn from from those that order the graphs."""


@dataclass(frozen=True)
class LinkGraphs(PackedGraphs):
    r"""Graphs with pairs of nodes, and whether each is joined.

    The edges are those that a network may see: what it sees, and every encoding, is made of these alone. Edges that it
    is to find are not among them; they are pairs. A ``Data`` or ``Batch`` has the pairs under PyG's name,
    ``edge_label_index`` :math:`[2, P]`, and their targets in ``y`` :math:`[P, 1]`, in the order they have here.

    - **pair_ptr**: :math:`[G + 1]`, where each graph's pairs begin
    - **pairs**: :math:`[2, P]`, node numbers within their graph
    - **joined**: :math:`[P, 1]`, 1 or 0; NaN where it is not known
    - **hidden_share**: of the edges to learn from, how many each epoch hides and asks for (:meth:`in_epoch`)
    """

    pair_ptr: Index = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    pairs: Array = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))
    joined: Array = field(default_factory=lambda: np.zeros((0, 1), dtype=np.float32))
    hidden_share: float = 0.0

    @classmethod
    def of(cls, graphs: PackedGraphs, num_pairs: ArrayLike, pairs: Array, joined: Array | None = None) -> LinkGraphs:
        """A set with pairs ``[2, P]``, those of each graph one after the other, ``num_pairs`` ``[G]``."""
        if joined is None:
            joined = np.full((pairs.shape[1], 1), np.nan, dtype=np.float32)
        values = {one.name: getattr(graphs, one.name) for one in fields(PackedGraphs)}
        return cls(**values, pair_ptr=pointers(num_pairs), pairs=pairs, joined=joined)

    @classmethod
    def from_file(cls, file: ArrayFile) -> LinkGraphs:
        arrays = file.arrays
        pairs = np.stack([arrays["pair/source"], arrays["pair/target"]])
        return cls.of(PackedGraphs.from_file(file), arrays["num_pairs"], pairs, arrays["pair/y"])

    def __getitem__(self, i: int) -> Data:
        data = super().__getitem__(i)
        number = int(self.numbers([i])[0])
        rows = slice(int(self.pair_ptr[number]), int(self.pair_ptr[number + 1]))
        data.edge_label_index = torch.from_numpy(self.pairs[:, rows].astype(np.int64))
        data.y = torch.from_numpy(self.joined[rows].astype(np.float32))
        return data

    def batch(self, indices: ArrayLike | Tensor | None = None) -> Batch:
        batch = super().batch(indices)
        [rows], [counts], [begin] = rows_of(self.pair_ptr[None], self.numbers(indices))
        first_node = batch.ptr[:-1]
        pairs = self.pairs[:, rows].astype(np.int64) + first_node.numpy().repeat(counts)
        batch.edge_label_index = torch.from_numpy(pairs)
        batch.y = torch.from_numpy(self.joined[rows].astype(np.float32))
        for name, increment in (("edge_label_index", first_node), ("y", torch.zeros_like(first_node))):
            batch._slice_dict[name] = torch.from_numpy(begin)
            batch._inc_dict[name] = increment
        return batch

    def with_known_targets(self, rows: ArrayLike) -> Self:
        """The same graphs with only the pairs in these rows."""
        chosen = np.sort(np.asarray(rows, dtype=np.int64))
        begin = np.searchsorted(chosen, self.pair_ptr)
        return replace(self, pair_ptr=begin, pairs=self.pairs[:, chosen], joined=self.joined[chosen])

    def in_epoch(self, seed: int, epoch: int) -> Self:
        """With as many unjoined pairs of each graph as it has joined ones, where there are only joined ones.

        First, a share of the edges is hidden and asked for, other ones in each epoch, and encodings are computed
        without them: the question is that of the test, to find edges that are not there. All depends on seed and epoch
        alone. Nothing is known here of the edges of validation and test, so one of these may be drawn as unjoined: a
        network is not told by what it is not asked.
        """
        if not len(self.joined) or not (self.joined == 1).all():
            return self
        rng = np.random.default_rng([seed, epoch, _DRAWS])
        asked = self
        if self.hidden_share:
            count = max(1, round(self.hidden_share * len(self.joined)))
            asked = self.with_known_targets(rng.permutation(len(self.joined))[:count])
            asked = asked._without_edges(pair_codes(self.node_ptr, asked._graph_of_pair, asked.pairs))
        graph, unjoined = draw_unjoined(self.node_ptr, np.diff(asked.pair_ptr), self._edge_codes, rng)
        of_pair = np.concatenate([asked._graph_of_pair, graph])
        order = np.argsort(of_pair, kind="stable")
        return replace(
            asked,
            pair_ptr=pointers(np.bincount(of_pair, minlength=len(self.pair_ptr) - 1)),
            pairs=np.concatenate([asked.pairs, unjoined], axis=1)[:, order],
            joined=np.concatenate([asked.joined, np.zeros((len(graph), 1), dtype=np.float32)])[order],
        )

    def _without_edges(self, codes: Index) -> Self:
        """Without some edges, in both directions, and with the encodings of what remains."""
        kept = ~np.isin(self._code_of_edge, codes)
        rest = replace(
            self,
            edge_ptr=pointers(np.bincount(self._graph_of_edge[kept], minlength=len(self.edge_ptr) - 1)),
            source=self.source[kept],
            target=self.target[kept],
            edge={name: column[kept] for name, column in self.edge.items()},
            path=None,
            structure_digest=None,
            encodings=(),
        )
        return rest.with_encodings(self.encodings)

    @property
    def num_pairs(self) -> Index:
        """Pairs of each graph in this view."""
        return np.diff(self.pair_ptr)[self.numbers()]

    @property
    def pair_rows(self) -> Index:
        """Where the pairs of this view stand in those of the whole set."""
        return rows_of(self.pair_ptr[None], self.numbers())[0][0]

    @property
    def y(self) -> Array:
        return np.asarray(self.joined[self.pair_rows])

    @property
    def _graph_of_pair(self) -> Index:
        return np.repeat(np.arange(len(self.pair_ptr) - 1), np.diff(self.pair_ptr))

    @property
    def _graph_of_edge(self) -> Index:
        return np.repeat(np.arange(len(self.edge_ptr) - 1), np.diff(self.edge_ptr))

    @cached_property
    def _code_of_edge(self) -> Index:
        return pair_codes(self.node_ptr, self._graph_of_edge, np.stack([self.source, self.target]))

    @cached_property
    def _edge_codes(self) -> Index:
        return np.unique(self._code_of_edge)

    def __reduce__(self) -> tuple[Any, ...]:
        return LinkGraphs, tuple(getattr(self, one.name) for one in fields(self))
