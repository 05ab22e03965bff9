"""SD files as tables: one row per molecule, its SMILES and name, and a column per data item."""

from __future__ import annotations

import io
import re
from collections.abc import Generator, Iterator, Sequence
from itertools import chain, islice

from lspe.data.errors import DataError
from lspe.data.molecules.processes import harm_of

SMILES, NAME = "smiles", "name"
_ITEM = re.compile(r">.*<(.+?)>")
_LOOKED_AT = 1000
"""Molecules at the beginning whose data items become columns."""

_LONG, _LONGEST = 2_000, 15_000
"""Lines (one per atom and bond) of a molecule that is tried in another process first, and of one that is not read."""

Record = tuple[int, list[str]]
Entry = tuple[str, str, dict[str, str]]


def is_sdf(start: bytes) -> bool:
    """Whether a file begins with a molecule in MDL's format: its fourth line counts atoms and bonds."""
    lines = start.splitlines()
    return len(lines) > 3 and lines[3].rstrip().endswith((b"V2000", b"V3000"))


def sdf_records(file: io.BufferedReader) -> Generator[Record]:
    """The names of the columns, then number and values of each molecule; one that RDKit cannot read has no SMILES."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace")
    try:
        entries = _entries(text)
        first = list(islice(entries, _LOOKED_AT))
        items = list(dict.fromkeys(item for _, _, found in first for item in found))
        taken = [item for item in items if item.lower() not in (SMILES, NAME)]
        yield 1, [SMILES, NAME, *taken]
        for number, (smiles, name, found) in enumerate(chain(first, entries), start=1):
            yield number, [smiles, name, *(found.get(item, "") for item in taken)]
    finally:
        text.detach()


def _entries(lines: Iterator[str]) -> Iterator[Entry]:
    block: list[str] = []
    for line in lines:
        if line.startswith("$$$$"):
            yield _entry(block)
            block = []
        else:
            block.append(line.rstrip("\r\n"))
    if any(line.strip() for line in block):
        yield _entry(block)


def _entry(block: list[str]) -> Entry:
    """SMILES, name and data items of one molecule."""
    ends = [number for number, line in enumerate(block) if line.startswith("M  END")]
    if not ends:
        raise DataError(f"the molecule {block[0].strip() if block else ''!r} of the SD file has no 'M  END' line")
    mol_block = block[: ends[0] + 1]
    return _smiles(mol_block), block[0].strip(), _items(block[ends[0] + 1 :])


def _smiles(lines: list[str]) -> str:
    """The SMILES of a molecule; none where it cannot be read, or is too large for that."""
    text = "\n".join(lines)
    if len(lines) > _LONGEST or (len(lines) > _LONG and harm_of(_all_to_smiles, text)):
        return ""
    return _all_to_smiles([text])[0]


def _all_to_smiles(blocks: Sequence[str]) -> list[str]:
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        mols = [Chem.MolFromMolBlock(block) for block in blocks]
    return ["" if mol is None else str(Chem.MolToSmiles(mol)) for mol in mols]


def _items(lines: list[str]) -> dict[str, str]:
    """``> <name>`` and the lines below it, up to an empty one."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if start := _ITEM.match(line):
            name = start[1]
            found[name] = ""
        elif not line.strip():
            name = ""
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
