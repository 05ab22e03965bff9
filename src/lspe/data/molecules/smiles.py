"""Molecules to graphs: SMILES to the arrays of nodes and edges, with OGB's features or ZINC's types.

Loaded by worker processes, so it needs NumPy and RDKit and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from rdkit.Chem import BondStereo, BondType, HybridizationType

from lspe.data.errors import DataError, MoleculeError
from lspe.data.molecules.binary import properties_of
from lspe.data.molecules.limits import FULLY_DESCRIBED, check_size, is_large
from lspe.data.molecules.processes import Refused, why_not
from lspe.data.molecules.properties import Mol, Numbers
from lspe.data.words import Fragments
from lspe.features import CategoricalFeatures, Features

_HYBRIDISATIONS = (
    HybridizationType.SP,
    HybridizationType.SP2,
    HybridizationType.SP3,
    HybridizationType.SP3D,
    HybridizationType.SP3D2,
)
_OGB_BOND_TYPES = (BondType.SINGLE, BondType.DOUBLE, BondType.TRIPLE, BondType.AROMATIC)
_STEREO = (
    BondStereo.STEREONONE,
    BondStereo.STEREOZ,
    BondStereo.STEREOE,
    BondStereo.STEREOCIS,
    BondStereo.STEREOTRANS,
    BondStereo.STEREOANY,
)
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
    """The molecule of a SMILES string, or a :class:`MoleculeError` that says what is wrong with it.

    A large one is tried in another process first.
    """
    if is_large(smiles) and (reason := why_not(partial(_try, fragments=fragments), smiles)):
        raise MoleculeError(smiles, reason)
    return parse_here(smiles, fragments)


def _try(smiles: Sequence[str], fragments: Fragments) -> None:
    for one in smiles:
        with suppress(MoleculeError):
            Chem.MolToSmiles(parse_here(one, fragments))


def parse_here(smiles: str, fragments: Fragments = "keep") -> Mol:
    """What :func:`parse` gives, in this process."""
    with rdBase.BlockLogs():
        return _parse(smiles, fragments)


def _parse(smiles: str, fragments: Fragments) -> Mol:
    if isinstance(smiles, Refused):
        raise MoleculeError(smiles, smiles.reason)
    check_size(smiles)
    text = smiles.strip()
    if not text:
        raise MoleculeError(text, "is no SMILES")
    if not text.isascii() or "\0" in text:  # RDKit passes over some of them without a word
        strange = next(character for character in text if not character.isascii() or character == "\0")
        raise MoleculeError(text, f"has the character {strange!r}, which no SMILES has")
    first, *rest = text.split(maxsplit=1)
    if rest and not rest[0].startswith("|"):
        raise MoleculeError(text, f"has something behind the SMILES {first}; put names into their own column")
    mol: Mol = Chem.MolFromSmiles(text)
    if mol is None:
        raise MoleculeError(text, _what_is_wrong(text))
    if mol.GetNumAtoms() == 0:
        raise MoleculeError(text, "has no atoms")
    if fragments != "keep" and "." in text:
        mol = _one_fragment(mol, text, fragments)
    return mol


def _what_is_wrong(text: str) -> str:
    if text.count(">") == 2:
        return "is a reaction, not a molecule: give the molecule that is asked about"
    raw: Mol = Chem.MolFromSmiles(text, sanitize=False)
    if raw is None:
        return "is not a SMILES string"
    try:
        problems = [problem.Message() for problem in Chem.DetectChemistryProblems(raw)]
    except RuntimeError:  # of RDKit 2024.03, where rings cannot be found
        problems = []
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
    found = properties_of(mols)
    number, chirality, degree, charge, hydrogens, radicals, hybridisation, aromatic, in_ring = found.atoms
    begin, end, bond_type, stereo, conjugated = found.bonds
    x = [
        np.where((number > 0) & (number < 119), number - 1, 118),
        np.minimum(chirality, 4),
        np.minimum(degree, 11),
        np.where(np.abs(charge) <= 5, charge + 5, 11),
        np.minimum(hydrogens, 9),
        np.minimum(radicals, 5),
        _place_in(_HYBRIDISATIONS, hybridisation, otherwise=5),
        aromatic,
        in_ring,
    ]
    edge_attr = [
        _place_in(_OGB_BOND_TYPES, bond_type, otherwise=4),
        _place_in(_STEREO, stereo, otherwise=5),
        conjugated,
    ]
    ends = np.stack([begin, end])
    return _arrays(found.num_nodes, found.num_bonds, ends, np.stack(x, axis=1), np.stack(edge_attr, axis=1))


def _place_in(entries: Sequence[int], values: NDArray[np.int64], *, otherwise: int) -> NDArray[np.int64]:
    """The place of each value among `entries`, or `otherwise`."""
    place = np.full(256, otherwise)
    place[[int(entry) for entry in entries]] = range(len(entries))
    return place[values]


def kekule_arrays(mols: Iterable[Mol], features: CategoricalFeatures) -> MoleculeArrays:
    """ZINC's features: the type of each atom (:func:`atom_types`) and the order of each bond, in the Kekulé
    form.

    `mols` are as :func:`kekule_form` or an unsanitised Kekulé SMILES gives them.
    """
    number_of = {name: number for number, name in enumerate(features.vocabulary)}
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
    ends = np.asarray(bonds, dtype=np.int64).reshape(-1, 2).T
    return _arrays(num_nodes, num_bonds, ends, np.asarray(atoms), np.asarray(orders))


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


def arrays_for(features: Features) -> Callable[[Iterable[Mol]], MoleculeArrays]:
    """What turns molecules into arrays with these features."""
    if features.kind == "ogb":
        return ogb_arrays
    if features.kind == "categorical" and features.vocabulary:
        return partial(_kekulise, features=features)
    raise DataError(f"molecules cannot be given {features.kind!r} features")


def _kekulise(mols: Iterable[Mol], features: CategoricalFeatures) -> MoleculeArrays:
    return kekule_arrays((kekule_form(mol) for mol in mols), features)


def _arrays(
    num_nodes: Numbers | list[int],
    num_bonds: Numbers | list[int],
    bonds: Numbers,
    x: NDArray[Any],
    edge_attr: NDArray[Any],
) -> MoleculeArrays:
    return MoleculeArrays(
        np.asarray(num_nodes, dtype=np.int64),
        np.asarray(num_bonds, dtype=np.int64),
        bonds,
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
    scaffolds: list[str]
    fragments: list[int]

    @property
    def count(self) -> int:
        """Of the SMILES in the list."""
        return len(self.rows) + len(self.reasons)


def read_smiles(
    smiles: Sequence[str],
    features: Features,
    *,
    fragments: Fragments = "keep",
    scaffolds: bool = False,
) -> Readings:
    """Turn SMILES into graphs; a bad one costs only itself."""
    to_arrays = arrays_for(features)
    rows, parts, names = [], [], []
    reasons: dict[int, str] = {}

    def readable() -> Iterator[Mol]:
        for row, text in enumerate(smiles):
            try:
                mol = _parse(text, fragments)
                if features.kind == "categorical" and not features.unknown:
                    to_arrays([mol])
            except MoleculeError as error:
                reasons[row] = error.reason
                continue
            rows.append(row)
            parts.append(text.count(".") + 1)
            if scaffolds:
                names.append(scaffold(mol))
            yield mol

    with rdBase.BlockLogs():
        arrays = to_arrays(readable())
    return Readings(arrays, np.array(rows, dtype=np.int64), reasons, names, parts)


def canonical(smiles: str, fragments: Fragments = "keep") -> str:
    """The canonical SMILES of a molecule."""
    return str(Chem.MolToSmiles(parse(smiles, fragments=fragments)))


def scaffold(mol: Mol) -> str:
    """The Bemis-Murcko scaffold, stereo included, as SMILES; empty for a molecule without rings.

    A large molecule is its own scaffold: finding it would take minutes.
    """
    if mol.GetNumAtoms() > FULLY_DESCRIBED:
        return str(Chem.MolToSmiles(mol))
    from rdkit.Chem.Scaffolds import MurckoScaffold

    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=True))
