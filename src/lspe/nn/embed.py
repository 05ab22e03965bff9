"""From the features of a data set to the first h and e."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
from lspe.ops import fusible, is_unchanged
from lspe.ops.fused.look_ups import look_up, sum_of_entries

if TYPE_CHECKING:
    from torch_geometric.data import Data

OGB_CHIRALITY = 1
MOST_KINDS = 256
"""Combinations of the types of several columns which are embedded one by one, to be looked up."""


class Embedder(nn.Module):
    """Node and edge features of a ``Data`` or ``Batch`` → h ``[N, d]``, e ``[E, edge_dim]``."""

    @abstractmethod
    def nodes(self, data: Data) -> Tensor:
        """``[N, d]``."""

    @abstractmethod
    def edges(self, data: Data) -> Tensor:
        """``[E, edge_dim]``."""

    @abstractmethod
    def added_pair(self) -> Tensor:
        """``[edge_dim]``: what two nodes without an edge share in full attention."""


class CategoricalEmbedder(Embedder):
    """One type a node and one a edge, as in ZINC; edge type 0 is kept for pairs without an edge."""

    def __init__(self, node_types: int, edge_types: int, dim: int, edge_dim: int) -> None:
        super().__init__()
        self.node_table = nn.Embedding(node_types, dim)
        self.edge_table = nn.Embedding(edge_types, edge_dim)

    def nodes(self, data: Data) -> Tensor:
        return _look_up(self.node_table, data.x, "node")

    def edges(self, data: Data) -> Tensor:
        return _look_up(self.edge_table, data.edge_attr, "edge")

    def added_pair(self) -> Tensor:
        return self.edge_table.weight[0]


class SummedEmbedding(nn.Module):
    """The sum of an embedding for each of several categorical columns: ``[N, columns]`` → ``[N, d]``.

    The tables of all columns stand one below the other in one. A value beyond its column's table, such as a
    chirality tag that the table of 2021 does not have, takes the column's last entry.
    """

    first: Tensor
    last: Tensor
    kinds: Tensor
    step: Tensor

    def __init__(self, sizes: Sequence[int], dim: int) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.weight = nn.Parameter(torch.cat([nn.init.xavier_uniform_(torch.empty(n, dim)) for n in sizes]))
        ends = torch.tensor(self.sizes).cumsum(0)
        self.register_buffer("first", ends - torch.tensor(self.sizes), persistent=False)
        self.register_buffer("last", torch.tensor(self.sizes) - 1, persistent=False)
        self.are_few = math.prod(self.sizes) <= MOST_KINDS
        if self.are_few:
            kinds = torch.cartesian_prod(*map(torch.arange, self.sizes)).view(-1, len(self.sizes))
            steps = [math.prod(self.sizes[column + 1 :]) for column in range(len(self.sizes))]
            self.register_buffer("kinds", kinds + self.first, persistent=False)
            self.register_buffer("step", torch.tensor(steps), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type == "cpu" and x.numel() and int(x.min()) < 0:
            raise IndexError(f"types are numbered from 0 on, but the batch has {int(x.min())}")
        x = torch.minimum(x, self.last)
        if not (is_unchanged(self, SummedEmbedding) and fusible(self.weight)):
            return F.embedding_bag(x + self.first, self.weight, mode="sum")
        return self._of_kinds(x) if self.are_few else sum_of_entries(self.weight, x + self.first)

    def _of_kinds(self, x: Tensor) -> Tensor:
        """A kind for each combination of types, the type in the last column counting single steps."""
        return look_up(sum_of_entries(self.weight, self.kinds), (x * self.step).sum(1))


class OGBEmbedder(Embedder):
    """OGB's nine atom and three bond features.

    Args:
        chirality_tags: entries of the chirality column: 4 in the tables of 2021, with which the paper counted
            its parameters, 5 in today's.

    """

    def __init__(self, dim: int, edge_dim: int, *, chirality_tags: int = 5) -> None:
        super().__init__()
        sizes = list(OGB_ATOM_TABLE)
        sizes[OGB_CHIRALITY] = chirality_tags
        self.node_table = SummedEmbedding(sizes, dim)
        self.edge_table = SummedEmbedding(OGB_BOND_TABLE, edge_dim)

    def nodes(self, data: Data) -> Tensor:
        return self.node_table(data.x)

    def edges(self, data: Data) -> Tensor:
        return self.edge_table(data.edge_attr)

    def added_pair(self) -> Tensor:
        zeros = torch.zeros(1, len(OGB_BOND_TABLE), dtype=torch.long, device=self.edge_table.weight.device)
        return self.edge_table(zeros)[0]


class ContinuousEmbedder(Embedder):
    """Real-valued features through a linear map each; pairs without an edge count as edges of value zero."""

    def __init__(self, node_features: int, edge_features: int, dim: int, edge_dim: int) -> None:
        super().__init__()
        self.node_map = nn.Linear(node_features, dim)
        self.edge_map = nn.Linear(edge_features, edge_dim)

    def nodes(self, data: Data) -> Tensor:
        return self.node_map(data.x.to(self.node_map.weight.dtype))

    def edges(self, data: Data) -> Tensor:
        return self.edge_map(data.edge_attr.to(self.edge_map.weight.dtype))

    def added_pair(self) -> Tensor:
        return self.edge_map.bias


class TypesAndNumbers(nn.Module):
    """The sum of an embedding of each column of types ``[R, C]`` and a linear map of numbers ``[R, F]``, ``[R, d]``.

    A learned vector takes the place of both where there is neither.
    """

    def __init__(self, types: Sequence[int], numbers: int, dim: int) -> None:
        super().__init__()
        self.table = SummedEmbedding(types, dim) if types else None
        self.map = nn.Linear(numbers, dim) if numbers else None
        self.alike = None if types or numbers else nn.Parameter(torch.randn(dim))

    def forward(self, types: Tensor | None, numbers: Tensor | None, rows: int) -> Tensor:
        parts = []
        if self.table is not None and types is not None:
            parts.append(self.table(types))
        if self.map is not None and numbers is not None:
            parts.append(self.map(numbers.to(self.map.weight.dtype)))
        if self.alike is not None:
            parts.append(self.alike.expand(rows, -1))
        return torch.stack(parts).sum(dim=0) if len(parts) > 1 else parts[0]


class MixedEmbedder(Embedder):
    """Types and numbers side by side; ``nodes`` and ``edges`` are the sizes of the tables and how many numbers.

    Edge type 0 is kept for pairs without an edge, which count as edges of value zero.
    """

    def __init__(
        self, nodes: tuple[Sequence[int], int], edges: tuple[Sequence[int], int], dim: int, edge_dim: int
    ) -> None:
        super().__init__()
        self.of_nodes = TypesAndNumbers(*nodes, dim)
        self.of_edges = TypesAndNumbers(*edges, edge_dim)
        self.edge_sizes = (len(edges[0]), edges[1])

    def nodes(self, data: Data) -> Tensor:
        return self.of_nodes(getattr(data, "node_type", None), getattr(data, "x", None), int(data.num_nodes))

    def edges(self, data: Data) -> Tensor:
        types, numbers = getattr(data, "edge_type", None), getattr(data, "edge_attr", None)
        return self.of_edges(types, numbers, data.edge_index.size(1))

    def added_pair(self) -> Tensor:
        types, numbers = self.edge_sizes
        parameter = next(self.of_edges.parameters())
        zero_types = torch.zeros(1, types, dtype=torch.long, device=parameter.device)
        return self.of_edges(zero_types, parameter.new_zeros(1, numbers), 1)[0]


class ConstantEmbedder(Embedder):
    """For graphs without features: all nodes start from one learned vector, all edges from another."""

    def __init__(self, dim: int, edge_dim: int) -> None:
        super().__init__()
        self.node = nn.Parameter(torch.randn(dim))
        self.pair = nn.Parameter(torch.randn(2, edge_dim))  # of two nodes without and with an edge

    def nodes(self, data: Data) -> Tensor:
        return self.node.expand(int(data.num_nodes), -1)

    def edges(self, data: Data) -> Tensor:
        return self.pair[1].expand(data.edge_index.size(1), -1)

    def added_pair(self) -> Tensor:
        return self.pair[0]


def embedder_for(features: Features, dim: int, edge_dim: int) -> Embedder:
    """What embeds such features of nodes and edges, with fresh weights; data say theirs (``data.features``)."""
    match features:
        case CategoricalFeatures():
            return CategoricalEmbedder(features.node_types, features.edge_types, dim, edge_dim)
        case OGBFeatures():
            return OGBEmbedder(dim, edge_dim, chirality_tags=features.chirality_tags)
        case ContinuousFeatures():
            return ContinuousEmbedder(features.node_features, features.edge_features, dim, edge_dim)
        case MixedFeatures():
            return MixedEmbedder(
                (features.node_types, features.node_features),
                (features.edge_types, features.edge_features),
                dim,
                edge_dim,
            )
        case NoFeatures():
            return ConstantEmbedder(dim, edge_dim)


def _look_up(table: nn.Embedding, types: Tensor, what: str) -> Tensor:
    try:
        if is_unchanged(table, nn.Embedding) and table.max_norm is None and fusible(table.weight):
            return look_up(table.weight, types.view(-1).long())
        return table(types.view(-1))
    except IndexError as error:
        low, high = int(types.min()), int(types.max())
        raise IndexError(
            f"{what} types are 0 to {table.num_embeddings - 1}, but the batch has {low} to {high}: "
            "was the network built for another data set?"
        ) from error
