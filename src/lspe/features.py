"""What stands on the nodes and edges of a set of graphs: one value, carried by data and taken by networks."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from lspe.config import Strict

OGB_ATOM_TABLE = (119, 5, 12, 12, 10, 6, 6, 2, 2)
"""Entries of each of OGB's nine atom features: atomic number, chirality, degree, formal charge, hydrogens,
radical electrons, hybridisation, aromatic, in a ring. The last entry of the first seven stands for anything
else."""
OGB_BOND_TABLE = (5, 6, 2)
"""Entries of each of OGB's three bond features: type, stereo, conjugated."""

WIDEST = 1_000_000
"""Beyond any table or network; a slip of the keyboard is said at once."""
Positive = Annotated[int, Field(ge=1, le=WIDEST)]


class CategoricalFeatures(Strict):
    """One type per node, ``x`` [N], and one per edge, ``edge_attr`` [E].

    Edge type 0 is never a real edge; it is kept for pairs without one. ``vocabulary`` names the node types where they
    have names; with ``unknown``, the last node type and the last edge type stand for all that is not in the tables.
    """

    kind: Literal["categorical"] = "categorical"
    node_types: Positive
    edge_types: Positive
    vocabulary: tuple[str, ...] = ()
    unknown: bool = False


class OGBFeatures(Strict):
    """OGB's nine atom features, ``x`` [N, 9], and three bond features, ``edge_attr`` [E, 3].

    ``chirality_tags`` is 4 in the tables of 2021, 5 in today's.
    """

    kind: Literal["ogb"] = "ogb"
    chirality_tags: Literal[4, 5] = 5


class ContinuousFeatures(Strict):
    """Real numbers, ``x`` [N, node_features] and ``edge_attr`` [E, edge_features]."""

    kind: Literal["continuous"] = "continuous"
    node_features: Positive
    edge_features: Positive


class MixedFeatures(Strict):
    """Types and numbers side by side.

    Numbers are ``x`` [N, node_features] and ``edge_attr`` [E, edge_features]; types ``node_type`` [N, C] and
    ``edge_type`` [E, C], of which each column has a table of so many entries. Edge type 0 is kept for pairs without an
    edge. Where there is neither, all nodes or all edges are alike.
    """

    kind: Literal["mixed"] = "mixed"
    node_types: tuple[Positive, ...] = ()
    node_features: Annotated[int, Field(ge=0, le=WIDEST)] = 0
    edge_types: tuple[Positive, ...] = ()
    edge_features: Annotated[int, Field(ge=0, le=WIDEST)] = 0


class NoFeatures(Strict):
    """Graphs that are only structure."""

    kind: Literal["none"] = "none"


Features = Annotated[
    CategoricalFeatures | OGBFeatures | ContinuousFeatures | MixedFeatures | NoFeatures, Field(discriminator="kind")
]

_NAMES_BEFORE = {
    "atom_types": "node_types",
    "bond_types": "edge_types",
    "atom_vocabulary": "vocabulary",
    "node_dim": "node_features",
    "edge_dim": "edge_features",
}
"""What version 0.1 called the fields in packed sets and run folders, where every kind had all of them."""


def read_features(values: Mapping[str, Any]) -> Features:
    """Features from plain values, as ``model_dump(mode="json")`` gives them or as version 0.1 wrote them."""
    if "atom_types" in values:
        values = {_NAMES_BEFORE.get(name, name): value for name, value in values.items() if value}
    features: Features = TypeAdapter(Features).validate_python(values)
    return features


def table_sizes(features: Features) -> Features:
    """What a network has to know of features: how large their tables are, not what the entries mean."""
    if features.kind == "categorical":
        return CategoricalFeatures(node_types=features.node_types, edge_types=features.edge_types)
    return features


def describe(features: Features) -> str:
    """Features in words."""
    match features:
        case CategoricalFeatures():
            return f"{features.node_types} node types and {features.edge_types} edge types"
        case ContinuousFeatures():
            return f"{features.node_features} numbers per node and {features.edge_features} per edge"
        case OGBFeatures():
            return "OGB's atom and bond features"
        case MixedFeatures():
            nodes = _types_and_numbers(features.node_types, features.node_features, "node")
            return f"{nodes}, {_types_and_numbers(features.edge_types, features.edge_features, 'edge')}"
        case NoFeatures():
            return "no features"


def _types_and_numbers(types: tuple[int, ...], numbers: int, what: str) -> str:
    parts = [f"types per {what} ({' × '.join(map(str, types))})"] * bool(types)
    parts += [f"{numbers} numbers per {what}"] * bool(numbers)
    return " and ".join(parts) or f"{what}s alike"
