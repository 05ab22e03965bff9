"""The words of encodings: which kinds there are, what one is, and how it is found by its name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lspe.errors import UserError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

NONE = "none"
"""What a network without an encoding says in its place."""

KINDS: dict[str, str] = {
    "rwpe": "lspe.encodings.random_walk:RWPE",
    "lappe": "lspe.encodings.laplacian:LAPPE",
    "heat": "lspe.encodings.heat:HEAT",
    "ppr": "lspe.encodings.pagerank:PAGERANK",
    "resistance": "lspe.encodings.resistance:RESISTANCE",
    "degree": "lspe.encodings.degree:DEGREE",
}
"""The kinds by name, and where each is written. A new one is a file of its own and a line here."""


class Compute(Protocol):
    """The encodings of all nodes of one graph or of a batch of graphs, ``[N, k]``."""

    def __call__(
        self,
        edge_index: Tensor,
        num_nodes: int | None,
        k: int,
        *,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        dtype: torch.dtype = ...,
    ) -> Tensor: ...


@dataclass(frozen=True)
class EncodingKind:
    """One kind of encoding. Transforms, networks, commands and the explorer know no more of it than this.

    Attributes:
        name: in configurations and on the command line.
        title: for people.
        columns: what the k columns are.
        attribute: the attribute of a ``Data`` that holds it.
        equation: in LaTeX, of node i.
        compute: it, for one graph or a batch of graphs.
        has_signs: whether each column of a graph is determined up to its sign only.

    """

    name: str
    title: str
    columns: str
    attribute: str
    equation: str
    compute: Compute
    has_signs: bool = False


def find_kind(kind: str | EncodingKind) -> EncodingKind:
    """The kind of that name."""
    if isinstance(kind, EncodingKind):
        return kind
    if kind not in KINDS:
        raise UserError(f"there is no encoding {kind!r}; there are {', '.join(KINDS)}")
    module, _, name = KINDS[kind].partition(":")
    found: EncodingKind = getattr(importlib.import_module(module), name)
    return found


def check_encoding(kind: str | EncodingKind, k: int) -> EncodingKind:
    """The kind of that name, if there is one and it can have ``k`` columns."""
    found = find_kind(kind)
    if k < 1:
        raise UserError(f"an encoding needs at least one column, not k = {k}")
    return found
