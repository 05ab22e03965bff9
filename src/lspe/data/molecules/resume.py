"""Readings that are kept on disk a chunk at a time, so that reading goes on where a process was ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from lspe.data.errors import CorruptFileError
from lspe.data.molecules.conversion import AT_ONCE, iter_pieces, iter_readings
from lspe.data.molecules.smiles import MoleculeArrays, Readings
from lspe.data.packed.container import ArrayWriter, open_arrays

CHUNK = 40 * AT_ONCE
"""Molecules whose graphs are kept together: as many are read again, at most, after a process was ended."""


def iter_kept_readings(
    work: Callable[[Sequence[str]], Readings],
    smiles: Sequence[str],
    folder: Path,
    *,
    processes: int | None = None,
    label: str = "molecules to graphs",
) -> Iterator[tuple[int, Readings]]:
    """What `work` makes of the SMILES, a chunk at a time, each with the position of its first one.

    Chunks found in `folder` are not read again, the others are kept there; few SMILES are not worth it.
    """
    if len(smiles) <= CHUNK:
        yield from iter_readings(work, smiles, processes=processes, label=label)
        return
    parts = [(begin, folder / f"{begin // CHUNK:06d}.lspe") for begin in range(0, len(smiles), CHUNK)]
    missing = [begin for begin, path in parts if not _is_whole(path)]
    ends = {begin: min(begin + CHUNK, len(smiles)) for begin in missing}
    pieces = (smiles[at : min(at + AT_ONCE, end)] for begin, end in ends.items() for at in range(begin, end, AT_ONCE))
    count = sum(end - begin for begin, end in ends.items())
    coming = iter_pieces(work, pieces, count, processes=processes, label=label)
    for begin, path in parts:
        if begin not in ends:
            yield begin, _open(path)
            continue
        read: list[Readings] = []
        while sum(one.count for one in read) < ends[begin] - begin:
            read.append(next(coming))
        chunk = _joined(read)
        _write(path, chunk)
        yield begin, chunk


def _joined(pieces: Sequence[Readings]) -> Readings:
    """Several readings as one."""
    begins = np.cumsum([0, *(one.count for one in pieces)]).tolist()
    arrays = MoleculeArrays(
        np.concatenate([one.arrays.num_nodes for one in pieces]),
        np.concatenate([one.arrays.num_bonds for one in pieces]),
        np.concatenate([one.arrays.bonds for one in pieces], axis=1),
        np.concatenate([one.arrays.x for one in pieces]),
        np.concatenate([one.arrays.edge_attr for one in pieces]),
    )
    numbered = list(zip(begins, pieces, strict=False))
    return Readings(
        arrays,
        np.concatenate([one.rows + begin for begin, one in numbered]),
        {begin + row: reason for begin, one in numbered for row, reason in one.reasons.items()},
        list(chain.from_iterable(one.scaffolds for one in pieces)),
        list(chain.from_iterable(one.fragments for one in pieces)),
    )


def _write(path: Path, reading: Readings) -> None:
    with ArrayWriter(path) as writer:
        for name, array in vars(reading.arrays).items():
            writer.append(name, array.T if name == "bonds" else array)
        writer.append("rows", reading.rows)
        writer.append("fragments", np.array(reading.fragments, dtype=np.int64))
        writer.finish({"reasons": list(reading.reasons.items()), "scaffolds": reading.scaffolds})


def _is_whole(path: Path) -> bool:
    try:
        open_arrays(path)
    except (FileNotFoundError, CorruptFileError):
        return False
    return True


def _open(path: Path) -> Readings:
    file = open_arrays(path, verify=False)
    arrays = {name: file.arrays[name] for name in MoleculeArrays.__dataclass_fields__}
    return Readings(
        MoleculeArrays(**{**arrays, "bonds": arrays["bonds"].T}),
        file.arrays["rows"],
        dict(map(tuple, file.meta["reasons"])),
        list(file.meta["scaffolds"]),
        file.arrays["fragments"].tolist(),
    )
