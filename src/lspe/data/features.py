"""What stands on the nodes and edges of a set, so that a network can be given the embedding that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

OGB_ATOM_TABLE = (119, 5, 12, 12, 10, 6, 6, 2, 2)
"""Entries of each of OGB's nine atom features: atomic number, chirality, degree, formal charge, hydrogens,
radical electrons, hybridisation, aromatic, in a ring. The last entry of the first seven stands for anything
else."""
OGB_BOND_TABLE = (5, 6, 2)
"""Entries of each of OGB's three bond features: type, stereo, conjugated."""

FeatureKind = Literal["categorical", "ogb", "continuous", "none"]


@dataclass(frozen=True)
class Features:
    """Node and edge features of a set.

    - ``categorical``: ``x`` [N] and ``edge_attr`` [E] are types below `atom_types` and `bond_types`. Bond
      type 0 is never a real bond; it is kept for edges that a network adds. `atom_vocabulary` names the
      atom types where they have names; with `unknown`, the last atom type and the last bond type stand for
      all that is not in the tables.
    - ``ogb``: ``x`` [N, 9] and ``edge_attr`` [E, 3] are OGB's atom and bond features.
    - ``continuous``: ``x`` [N, node_dim] and ``edge_attr`` [E, edge_dim] are numbers.
    - ``none``: nodes and edges carry nothing.
    """

    kind: FeatureKind
    atom_types: int | None = None
    bond_types: int | None = None
    atom_vocabulary: tuple[str, ...] = ()
    unknown: bool = False
    node_dim: int | None = None
    edge_dim: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON or YAML."""
        return {**asdict(self), "atom_vocabulary": list(self.atom_vocabulary)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Features:
        """The inverse of :meth:`to_dict`."""
        return cls(**{**values, "atom_vocabulary": tuple(values.get("atom_vocabulary", ()))})
