"""The properties of many molecules' atoms and bonds at once, out of the binary form in which RDKit stores molecules.

RDKit writes the form of a molecule (``Mol.ToBinary``) in a single call: a header, the atoms, the bonds, the rings.
Atoms and bonds have different lengths, because only what differs from the usual is written, with flags that say what.
So the atoms of all molecules are gone through side by side, the first of each, the second of each, and so on.

Only the version of the form that is known here is read, and of it only molecules without anything rare; where a flag
is not known or a section does not begin where the one before should end, the molecule counts as not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import BondType, HybridizationType

from lspe.data.molecules.properties import Mol, Numbers, Properties, ask

Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_HEADER = np.frombuffer(np.array([0xDEADBEEF, 0, 16, 4, 0], dtype="<u4").tobytes(), dtype=np.uint8)
"""How a form begins: a mark, and the version 16.4.0."""
_COUNTS = 20
_SECTIONS = 28
_SHORT_NUMBERS = 0x80
_ATOMS, _BONDS, _RINGS = 1, 11, 66
_FEWER_ATOMS = 255
"""Molecules of fewer atoms have numbers of atoms in one byte."""

_AROMATIC, _NO_IMPLICIT_HYDROGENS = 0x40, 0x20
_ATOM_FLAGS = _AROMATIC | _NO_IMPLICIT_HYDROGENS
_ATOM_FIELDS = 6
_CHARGE, _CHIRALITY, _HYBRIDISATION, _EXPLICIT_HYDROGENS, _VALENCE, _IMPLICIT_HYDROGENS, _RADICALS = range(1, 8)
_ISOTOPE = 8
_FIELDS = 0x1FE
"""The bits of the fields above: charge to radicals one byte each, the isotope four."""

_ATOM_LENGTH = np.array([_ATOM_FIELDS + fields.bit_count() + 3 * (fields >> _ISOTOPE) for fields in range(512)])

_CONJUGATED, _HAS_TYPE, _HAS_DIRECTION, _HAS_STEREO = 0x20, 0x08, 0x04, 0x02
_BOND_FLAGS = _AROMATIC | _CONJUGATED | _HAS_TYPE | _HAS_DIRECTION | _HAS_STEREO
_BOND_FIELDS = 3

_WORTH_READING = 8
_LONGEST = 300
"""Bytes behind the last form, so that a look ahead never leaves the data."""


def properties_of(mols: Iterable[Mol]) -> Properties:
    """The properties of all atoms and bonds, in RDKit's order.

    Most molecules are read out of their binary form, in a fifth of the time of asking for each property; few molecules
    and those whose form is not known are asked. A molecule is let go of before the next one is taken: reading SMILES is
    a fifth quicker where it finds the memory of the molecule before still in the cache.
    """
    mols = iter(mols)
    first = list(islice(mols, _WORTH_READING))
    if len(first) < _WORTH_READING:
        return ask(first)
    forms = [mol.ToBinary(0) for mol in chain(first, mols)]
    known, read = read_forms(forms)
    if known.all():
        return read
    unknown = [Chem.Mol(form) for form, is_known in zip(forms, known.tolist(), strict=True) if not is_known]
    return _merged(known, read, ask(unknown))


def read_forms(forms: Sequence[bytes]) -> tuple[Mask, Properties]:
    """Which of the forms [G] are known, and the properties of those molecules."""
    sizes = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    data: Bytes = np.frombuffer(b"".join([*forms, bytes(_LONGEST)]), dtype=np.uint8)
    begin = np.cumsum(sizes) - sizes

    num_nodes, num_bonds = _number(data, begin + _COUNTS), _number(data, begin + _COUNTS + 4)
    known: Mask = (data[begin[:, None] + np.arange(_HEADER.size)] == _HEADER).all(1) & (num_nodes < _FEWER_ATOMS)
    known &= (data[begin + _SECTIONS] == _SHORT_NUMBERS) & (data[begin + _SECTIONS + 1] == _ATOMS)
    num_nodes, num_bonds = np.where(known, num_nodes, 0), np.where(known, num_bonds, 0)

    atom, end = _walk(data, begin + _SECTIONS + 2, num_nodes, _atom_length)
    fields = _number(data, atom + 2)
    _exclude(known, num_nodes, ((data[atom + 1] & ~np.uint8(_ATOM_FLAGS)) != 0) | ((fields & ~_FIELDS) != 0))
    known &= data[end] == _BONDS
    bond, end = _walk(data, end + 1, num_bonds, _bond_length)
    _exclude(known, num_bonds, (data[bond + 2] & ~np.uint8(_BOND_FLAGS)) != 0)
    known &= data[end] == _RINGS

    in_ring = _in_ring(data, end + 1, num_nodes, known)
    atoms, bonds = np.repeat(known, num_nodes), np.repeat(known, num_bonds)
    bond_values = _bond_values(data, bond[bonds])
    degree = _degrees(bond_values[:2], num_nodes[known], num_bonds[known])
    atom_values = _atom_values(data, atom[atoms], fields[atoms], degree, in_ring[atoms])
    return known, Properties(num_nodes[known], num_bonds[known], atom_values, bond_values)


def _number(data: Bytes, place: Numbers) -> Numbers:
    """The whole number of four bytes at each place."""
    return np.ascontiguousarray(data[place[:, None] + np.arange(4)]).view("<i4")[:, 0].astype(np.int64)


def _walk(
    data: Bytes, begin: Numbers, count: Numbers, length: Callable[[Bytes, Numbers], Numbers]
) -> tuple[Numbers, Numbers]:
    """Where each entry begins, and where the last of each molecule ends [G]; molecule g has `count[g]` of them."""
    place = begin.copy()
    first = np.cumsum(count) - count
    places = np.empty(int(count.sum()), dtype=np.int64)
    for step in range(int(count.max(initial=0))):
        going = np.flatnonzero(count > step)
        here = place[going]
        places[first[going] + step] = here
        place[going] = np.minimum(here + length(data, here), data.size - _LONGEST)
    return places, place


def _exclude(known: Mask, count: Numbers, rare: Mask) -> None:
    """Molecules of which one of the ``count`` [G] entries is rare are not known."""
    known[np.repeat(np.arange(count.size), count)[rare]] = False


def _atom_length(data: Bytes, atom: Numbers) -> Numbers:
    fields = data[atom + 2].astype(np.int64) | (data[atom + 3].astype(np.int64) << 8)
    return _ATOM_LENGTH[fields & _FIELDS]


def _bond_length(data: Bytes, bond: Numbers) -> Numbers:
    flags = data[bond + 2].astype(np.int64)
    written = _BOND_FIELDS + (flags >> 3 & 1) + (flags >> 2 & 1)
    has_stereo = flags >> 1 & 1
    return written + has_stereo * (2 + data[bond + written + 1])


def _in_ring(data: Bytes, begin: Numbers, num_nodes: Numbers, known: Mask) -> Numbers:
    """Whether each atom is in a ring."""
    num_rings = np.where(known, _number(data, begin), 0)
    ring, _ = _walk(data, begin + 4, num_rings, lambda data, place: 1 + data[place].astype(np.int64))
    sizes = data[ring].astype(np.int64)
    member = np.repeat(ring + 1 - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    first = np.repeat(np.cumsum(num_nodes) - num_nodes, num_rings)
    in_ring = np.zeros(int(num_nodes.sum()), dtype=np.int64)
    in_ring[np.repeat(first, sizes) + data[member]] = 1
    return in_ring


def _atom_values(data: Bytes, atom: Numbers, fields: Numbers, degree: Numbers, in_ring: Numbers) -> Numbers:
    place = atom + _ATOM_FIELDS
    values = {}
    for field in range(_CHARGE, _RADICALS + 1):
        written = fields >> field & 1
        usual = int(HybridizationType.SP3) if field == _HYBRIDISATION else 0
        values[field] = np.where(written == 1, data[place], usual)
        place = place + written
    flags = data[atom + 1]
    implicit = np.where(flags & _NO_IMPLICIT_HYDROGENS, 0, values[_IMPLICIT_HYDROGENS])
    hydrogens = values[_EXPLICIT_HYDROGENS] + implicit
    return np.stack(
        [
            data[atom],
            values[_CHIRALITY],
            degree + hydrogens,
            values[_CHARGE].astype(np.int8),
            hydrogens,
            values[_RADICALS],
            values[_HYBRIDISATION],
            (flags & _AROMATIC) != 0,
            in_ring,
        ],
        dtype=np.int64,
        casting="unsafe",
    )


def _bond_values(data: Bytes, bond: Numbers) -> Numbers:
    flags = data[bond + 2]
    has_type, has_direction = (flags & _HAS_TYPE) != 0, (flags & _HAS_DIRECTION) != 0
    kind = np.where(has_type, data[bond + _BOND_FIELDS], int(BondType.SINGLE))
    stereo = np.where(flags & _HAS_STEREO, data[bond + _BOND_FIELDS + has_type + has_direction], 0)
    return np.stack([data[bond], data[bond + 1], kind, stereo, (flags & _CONJUGATED) != 0], dtype=np.int64)


def _degrees(ends: Numbers, num_nodes: Numbers, num_bonds: Numbers) -> Numbers:
    """The number of bonds of each atom."""
    first = np.repeat(np.cumsum(num_nodes) - num_nodes, num_bonds)
    return np.bincount((ends + first).ravel(), minlength=int(num_nodes.sum()))


def _merged(first: Mask, one: Properties, other: Properties) -> Properties:
    """Molecules of two lists in one order: `first` [G] says which are of `one`."""

    def mixed(of_first: Mask, a: Numbers, b: Numbers) -> Numbers:
        result = np.empty((*a.shape[:-1], of_first.size), dtype=np.int64)
        result[..., of_first], result[..., ~of_first] = a, b
        return result

    num_nodes = mixed(first, one.num_nodes, other.num_nodes)
    num_bonds = mixed(first, one.num_bonds, other.num_bonds)
    return Properties(
        num_nodes,
        num_bonds,
        mixed(np.repeat(first, num_nodes), one.atoms, other.atoms),
        mixed(np.repeat(first, num_bonds), one.bonds, other.bonds),
    )
