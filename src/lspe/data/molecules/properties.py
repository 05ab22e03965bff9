"""What RDKit knows of the atoms and bonds of molecules, as arrays; asked for one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit.Chem import Atom, Bond

Mol = Any
Numbers = NDArray[np.int64]

ATOM_PROPERTIES: tuple[Callable[[Any], Any], ...] = (
    Atom.GetAtomicNum,
    Atom.GetChiralTag,
    Atom.GetTotalDegree,
    Atom.GetFormalCharge,
    Atom.GetTotalNumHs,
    Atom.GetNumRadicalElectrons,
    Atom.GetHybridization,
    Atom.GetIsAromatic,
    Atom.IsInRing,
)
BOND_PROPERTIES: tuple[Callable[[Any], Any], ...] = (
    Bond.GetBeginAtomIdx,
    Bond.GetEndAtomIdx,
    Bond.GetBondType,
    Bond.GetStereo,
    Bond.GetIsConjugated,
)


@dataclass(frozen=True)
class Properties:
    """Of several molecules: `num_nodes`, `num_bonds` [G]; `atoms` [9, N] and `bonds` [5, E] in the order of
    :data:`ATOM_PROPERTIES` and :data:`BOND_PROPERTIES`, enumerations as numbers, ends counted within their molecule.
    """

    num_nodes: Numbers
    num_bonds: Numbers
    atoms: Numbers
    bonds: Numbers


def ask(mols: Sequence[Mol]) -> Properties:
    """The properties by a call for each of them."""
    num_nodes, num_bonds = [], []
    atom_values: list[list[int]] = [[] for _ in ATOM_PROPERTIES]
    bond_values: list[list[int]] = [[] for _ in BOND_PROPERTIES]
    for mol in mols:
        atoms = [mol.GetAtomWithIdx(number) for number in range(mol.GetNumAtoms())]
        bonds = [mol.GetBondWithIdx(number) for number in range(mol.GetNumBonds())]
        num_nodes.append(len(atoms))
        num_bonds.append(len(bonds))
        for values, getter in zip(atom_values, ATOM_PROPERTIES, strict=True):
            values.extend(map(getter, atoms))
        for values, getter in zip(bond_values, BOND_PROPERTIES, strict=True):
            values.extend(map(getter, bonds))
    return Properties(
        *(np.asarray(values, dtype=np.int64) for values in (num_nodes, num_bonds, atom_values, bond_values))
    )
