"""Molecules to graphs: SMILES to the arrays of nodes and edges, with OGB's features or ZINC's types.

Loaded by worker processes, so it needs NumPy and RDKit and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from rdkit.Chem import BondStereo, BondType, HybridizationType

from lspe.data.errors import DataError, MoleculeError
from lspe.data.features import Features

Mol = Any
Fragments = Literal["keep", "largest", "error"]

_HYBRIDISATION = {
    kind: number
    for number, kind in enumerate(
        [
            HybridizationType.SP,
            HybridizationType.SP2,
            HybridizationType.SP3,
            HybridizationType.SP3D,
            HybridizationType.SP3D2,
        ]
    )
}
_OGB_BOND_TYPE = {BondType.SINGLE: 0, BondType.DOUBLE: 1, BondType.TRIPLE: 2, BondType.AROMATIC: 3}
_STEREO = {
    BondStereo.STEREONONE: 0,
    BondStereo.STEREOZ: 1,
    BondStereo.STEREOE: 2,
    BondStereo.STEREOCIS: 3,
    BondStereo.STEREOTRANS: 4,
    BondStereo.STEREOANY: 5,
}
_BOND_ORDER = {BondType.SINGLE: 1, BondType.DOUBLE: 2, BondType.TRIPLE: 3}


@dataclass(frozen=True)
class MoleculeArrays:
    """The graphs of several molecules, one after the other; each bond is listed once."""

    num_nodes: NDArray[np.int64]
    num_bonds: NDArray[np.int64]
    bonds: NDArray[np.int64]
    x: NDArray[np.uint8]
    edge_attr: NDArray[np.uint8]


def parse(smiles: str, *, fragments: Fragments = "keep") -> Mol:
    """The molecule of a SMILES string; a :class:`MoleculeError` that says what is wrong with it where there is
    none.
    """
    text = smiles.strip()
    if not text:
        raise MoleculeError(text, "is no SMILES")
    if not text.isascii():  # RDKit passes over some of them without a word
        strange = next(character for character in text if not character.isascii())
        raise MoleculeError(text, f"has the character {strange!r}, which no SMILES has")
    first, *rest = text.split(maxsplit=1)
    if rest and not rest[0].startswith("|"):
        raise MoleculeError(text, f"has something behind the SMILES {first}; put names into their own column")
    with rdBase.BlockLogs():
        mol = Chem.MolFromSmiles(text)
        if mol is None:
            raise MoleculeError(text, _what_is_wrong(text))
    if mol.GetNumAtoms() == 0:
        raise MoleculeError(text, "has no atoms")
    if fragments != "keep" and "." in text:
        mol = _one_fragment(mol, text, fragments)
    return mol


def _what_is_wrong(text: str) -> str:
    raw: Mol = Chem.MolFromSmiles(text, sanitize=False)
    if raw is None:
        return "is not a SMILES string"
    problems = [problem.Message() for problem in Chem.DetectChemistryProblems(raw)]
    return f"is not a possible molecule: {'; '.join(problems) or 'RDKit cannot sanitise it'}"


def _one_fragment(mol: Mol, text: str, fragments: Fragments) -> Mol:
    parts = Chem.GetMolFrags(mol, asMols=True)
    if len(parts) == 1:
        return mol
    if fragments == "error":
        raise MoleculeError(text, f"has {len(parts)} fragments")
    return max(parts, key=lambda part: (part.GetNumHeavyAtoms(), sum(a.GetMass() for a in part.GetAtoms())))


def ogb_arrays(mols: Iterable[Mol]) -> MoleculeArrays:
    """OGB's nine atom and three bond features, by its vocabularies."""
    num_nodes, num_bonds = [], []
    bonds: list[int] = []
    atoms: list[int] = []
    attributes: list[int] = []
    for mol in mols:
        num_nodes.append(mol.GetNumAtoms())
        num_bonds.append(mol.GetNumBonds())
        for atom in mol.GetAtoms():
            number = atom.GetAtomicNum()
            charge = atom.GetFormalCharge()
            atoms += (
                number - 1 if 0 < number < 119 else 118,
                min(int(atom.GetChiralTag()), 4),
                min(atom.GetTotalDegree(), 11),
                charge + 5 if -5 <= charge <= 5 else 11,
                min(atom.GetTotalNumHs(), 9),
                min(atom.GetNumRadicalElectrons(), 5),
                _HYBRIDISATION.get(atom.GetHybridization(), 5),
                atom.GetIsAromatic(),
                atom.IsInRing(),
            )
        for bond in mol.GetBonds():
            bonds += (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
            attributes += (
                _OGB_BOND_TYPE.get(bond.GetBondType(), 4),
                _STEREO.get(bond.GetStereo(), 5),
                bond.GetIsConjugated(),
            )
    return _arrays(num_nodes, num_bonds, bonds, np.asarray(atoms).reshape(-1, 9), np.asarray(attributes).reshape(-1, 3))


def kekule_arrays(mols: Iterable[Mol], features: Features) -> MoleculeArrays:
    """ZINC's features: the type of each atom (:func:`atom_types`) and the order of each bond, in the Kekulé
    form.

    `mols` are as :func:`kekule_form` or an unsanitised Kekulé SMILES gives them.
    """
    number_of = {name: number for number, name in enumerate(features.atom_vocabulary)}
    unknown_atom, unknown_bond = len(number_of), 4
    num_nodes, num_bonds = [], []
    bonds: list[int] = []
    atoms: list[int] = []
    orders: list[int] = []
    for mol in mols:
        num_nodes.append(mol.GetNumAtoms())
        num_bonds.append(mol.GetNumBonds())
        types = atom_types(mol)
        atoms += [number_of.get(name, unknown_atom) for name in types]
        for bond in mol.GetBonds():
            bonds += (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
            orders.append(_BOND_ORDER.get(bond.GetBondType(), unknown_bond))
        strange = [] if features.unknown else sorted(set(types) - number_of.keys())
        if not features.unknown and unknown_bond in orders[len(orders) - mol.GetNumBonds() :]:
            strange.append("a bond that is not single, double or triple")
        if strange:
            reason = f"has {', '.join(strange)}, which the vocabulary does not know"
            raise MoleculeError(Chem.MolToSmiles(mol), reason)
    return _arrays(num_nodes, num_bonds, bonds, np.asarray(atoms), np.asarray(orders))


def atom_types(mol: Mol) -> list[str]:
    """Element, hydrogens in brackets and charge of each atom of a Kekulé form: ``C``, ``N H2 +``, ``Fe
    +2``.
    """
    names = []
    for atom in mol.GetAtoms():
        hydrogens, charge = atom.GetNumExplicitHs(), atom.GetFormalCharge()
        name = atom.GetSymbol()
        if hydrogens:
            name += f" H{hydrogens}"
        if charge:
            name += f" {'+' if charge > 0 else '-'}{abs(charge) if abs(charge) > 1 else ''}"
        names.append(name)
    return names


def kekule_form(mol: Mol) -> Mol:
    """`mol` as its Kekulé SMILES describes it, not sanitised, atoms in the order of `mol`."""
    text = Chem.MolToSmiles(mol, kekuleSmiles=True)
    order = list(mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    return Chem.RenumberAtoms(Chem.MolFromSmiles(text, sanitize=False), np.argsort(order).tolist())


def from_kekule_smiles(smiles: str) -> Mol:
    """The molecule that a Kekulé SMILES spells out, not sanitised."""
    mol = Chem.MolFromSmiles(smiles, sanitize=False)
    if mol is None:
        raise MoleculeError(smiles, "is not a SMILES string")
    return mol


def arrays_for(features: Features) -> Callable[[Sequence[Mol]], MoleculeArrays]:
    """What turns molecules into arrays with these features."""
    if features.kind == "ogb":
        return ogb_arrays
    if features.kind == "categorical" and features.atom_vocabulary:
        return partial(_kekulise, features=features)
    raise DataError(f"molecules cannot be given {features.kind!r} features")


def _kekulise(mols: Sequence[Mol], features: Features) -> MoleculeArrays:
    return kekule_arrays((kekule_form(mol) for mol in mols), features)


def _arrays(
    num_nodes: list[int], num_bonds: list[int], bonds: list[int], x: NDArray[Any], edge_attr: NDArray[Any]
) -> MoleculeArrays:
    return MoleculeArrays(
        np.asarray(num_nodes, dtype=np.int64),
        np.asarray(num_bonds, dtype=np.int64),
        np.asarray(bonds, dtype=np.int64).reshape(-1, 2).T,
        x.astype(np.uint8),
        edge_attr.astype(np.uint8),
    )


@dataclass(frozen=True)
class Readings:
    """What came of a list of SMILES: the graphs of those that could be read, and why the others could not.

    `rows` [G] says which of the list each graph is; `reasons` has an entry for each that is no graph.
    `canonical` and `scaffolds` (where asked for) and `fragments` (molecules of more than one) go with the
    graphs.
    """

    arrays: MoleculeArrays
    rows: NDArray[np.int64]
    reasons: dict[int, str]
    canonical: list[str]
    scaffolds: list[str]
    fragments: list[int]


def read_smiles(
    smiles: Sequence[str],
    features: Features,
    *,
    fragments: Fragments = "keep",
    canonical: bool = False,
    scaffolds: bool = False,
) -> Readings:
    """Turn SMILES into graphs; a bad one costs only itself."""
    to_arrays = arrays_for(features)
    rows, mols, parts = [], [], []
    reasons: dict[int, str] = {}
    for row, text in enumerate(smiles):
        try:
            mol = parse(text, fragments=fragments)
            if not features.unknown and features.kind == "categorical":
                to_arrays([mol])
        except MoleculeError as error:
            reasons[row] = error.reason
            continue
        rows.append(row)
        mols.append(mol)
        parts.append(text.count(".") + 1)
    return Readings(
        to_arrays(mols),
        np.array(rows, dtype=np.int64),
        reasons,
        [Chem.MolToSmiles(mol) for mol in mols] if canonical else [],
        [scaffold(mol) for mol in mols] if scaffolds else [],
        parts,
    )


def scaffold(mol: Mol) -> str:
    """The Bemis-Murcko scaffold, stereo included, as SMILES; empty for a molecule without rings."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=True))
