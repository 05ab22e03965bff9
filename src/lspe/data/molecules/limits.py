"""How large a molecule may be to be read, and what of a large one costs too much to ask.

RDKit follows chains and rings by recursion: some ten thousand atoms in one exhaust the stack and end the process.
"""

import re

from lspe.data.errors import MoleculeError

LONGEST = 20_000
"""Characters of a SMILES."""

MOST_ATOMS = 5_000
MOST_RINGS = 1_000

SMALL = 2_000
"""As many characters hold no more atoms and rings than are allowed, and are read in a fraction of a second."""

FULLY_DESCRIBED = 500
"""Atoms of a molecule of which everything is asked; scaffolds and some descriptors take time with the cube of them."""

_ATOM = re.compile(r"\[[^\]]*\]|Cl|Br|[BCNOPSFIbcnops*]")
_RING_CLOSURE = re.compile(r"%\(\d+\)|%\d\d|\d")


def is_large(smiles: str) -> bool:
    """Whether a SMILES is long enough to be read with care."""
    return len(smiles) > SMALL


def check_size(smiles: str) -> None:
    """Raise a :class:`MoleculeError` where a SMILES is too large to be read; takes no time."""
    if not is_large(smiles):
        return
    if len(smiles) > LONGEST:
        raise MoleculeError(smiles, f"has {len(smiles):,} characters; at most {LONGEST:,} are read")
    without_atoms, atoms = _ATOM.subn("", smiles)
    rings = len(_RING_CLOSURE.findall(without_atoms)) // 2
    for count, most, what in ((atoms, MOST_ATOMS, "atoms"), (rings, MOST_RINGS, "rings")):
        if count > most:
            raise MoleculeError(smiles, f"has {count:,} {what}; molecules of at most {most:,} are read")
