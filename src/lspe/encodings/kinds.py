"""The words of encodings: which kinds there are, what one is, and how it is found by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lspe.errors import UserError
from lspe.own_parts import import_part, is_import_path

if TYPE_CHECKING:
    from torch import Tensor

NONE = "none"
"""What a network without an encoding says in its place."""

ATTRIBUTE = "attribute:"
"""Begins the name of an encoding that the graphs bring along in an attribute."""

KINDS: dict[str, str] = {
    "rwpe": "lspe.encodings.random_walk:RWPE",
    "lappe": "lspe.encodings.laplacian:LAPPE",
    "heat": "lspe.encodings.heat:HEAT",
    "ppr": "lspe.encodings.pagerank:PAGERANK",
    "resistance": "lspe.encodings.resistance:RESISTANCE",
    "degree": "lspe.encodings.degree:DEGREE",
    "rrwp": "lspe.encodings.relative_walk:RRWP",
    "heat-pairs": "lspe.encodings.heat:HEAT_PAIRS",
    "ppr-pairs": "lspe.encodings.pagerank:PAGERANK_PAIRS",
    "resistance-pairs": "lspe.encodings.resistance:RESISTANCE_PAIRS",
}
"""The kinds by name, and where each is written. A new one is a file of its own and a line here."""


Level = Literal["node", "pair"]
"""What an encoding belongs to: each node, or each pair of nodes of a graph."""


@dataclass(frozen=True)
class EncodingKind:
    """One kind of encoding. Transforms, networks, commands and the explorer know no more of it than this.

    Attributes:
        name: in configurations and on the command line.
        title: for people.
        columns: what the k columns are.
        attribute: the attribute of a ``Data`` that holds it: a row per node, or per edge for an encoding of pairs.
        equation: in LaTeX, of node i or of the pair ij.
        compute: its function, ``(edge_index, num_nodes, k, *, edge_weight, batch, dtype)`` → ``[N, k]`` for one graph
            or a batch of graphs, as :func:`~lspe.encodings.random_walk_encoding`. That of pairs takes ``pairs``
            ``[2, P]`` too, the edges if left out, and gives ``[P, k]``.
        level: ``node`` or ``pair``.
        estimate: for a graph that is too large for the exact one: ``(edge_index, num_nodes, k)`` → ``[N, k]``.
        width: the number of columns where there is no choice.
        has_signs: whether each column of a graph is determined up to its sign only.
        comparable: where the encoding depends on a choice, what of it does not: ``(edge_index, num_nodes, k)`` of one
            graph → ``[n, c · k]``, c columns for each of the k; two graphs are told apart by it.
        is_given: whether the graphs bring it along, so that nothing is computed.
        source: a digest of the file of someone's own function, ``None`` where there is no file; what another version
            of it computed is not used again.

    """

    name: str
    title: str
    columns: str
    attribute: str
    equation: str
    compute: Callable[..., Tensor]
    level: Level = "node"
    estimate: Callable[[Tensor, int, int], Tensor] | None = None
    width: int | None = None
    has_signs: bool = False
    comparable: Callable[[Tensor, int, int], Tensor] | None = None
    is_given: bool = False
    source: str | None = ""


def find_kind(kind: str | EncodingKind) -> EncodingKind:
    """The kind of that name, the one at that import path, or the values in that attribute of the graphs."""
    if isinstance(kind, EncodingKind):
        return kind
    if kind in KINDS:
        found: EncodingKind = import_part(KINDS[kind])
        return found
    if kind.startswith(ATTRIBUTE) and kind != ATTRIBUTE:
        from lspe.encodings.own import kind_of_attribute

        return kind_of_attribute(kind.removeprefix(ATTRIBUTE))
    if is_import_path(kind):
        from lspe.encodings.own import kind_of_import_path

        return kind_of_import_path(kind)
    raise UserError(
        f"there is no encoding {kind!r}; there are {', '.join(KINDS)}, my_module:my_encoding (a function of your own) "
        "and attribute:NAME (what the nodes of your graphs have in data.NAME)"
    )


def check_encoding(kind: str | EncodingKind, k: int, level: Level | None = None) -> EncodingKind:
    """The kind of that name, if there is one, of that level and with ``k`` columns."""
    found = find_kind(kind)
    if level not in (None, found.level):
        others = [name for name in KINDS if find_kind(name).level == level]
        raise UserError(
            f"{found.name!r} is an encoding of {found.level}s, and here one of {level}s is needed: {', '.join(others)}"
        )
    if k < 1:
        raise UserError(f"an encoding needs at least one column, not k = {k}")
    if found.width not in (None, k):
        raise UserError(f"the encoding {found.name!r} has k = {found.width} columns, not {k}")
    return found
