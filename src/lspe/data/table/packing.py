"""From the rows of a table to a packed set of graphs, once for each table."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lspe.data.errors import DataError
from lspe.data.graphdata import Description
from lspe.data.molecules.conversion import to_packed
from lspe.data.molecules.resume import iter_kept_readings
from lspe.data.molecules.smiles import canonical, read_smiles
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index
from lspe.data.packed.writer import PackedWriter
from lspe.data.report import MEND, Finding, Report, first_few
from lspe.data.table.duplicates import KEPT, find_duplicates, fingerprints
from lspe.data.table.targets import check_something_to_learn
from lspe.data.words import Fragments
from lspe.features import OGBFeatures

if TYPE_CHECKING:
    from lspe.data.table.table import Table

_FEATURES = OGBFeatures()
_BYTES_ON_THE_WAY = 60
"""Of a character of SMILES, until a set is complete; a third of it remains."""


def packed_file(table: Table, fragments: Fragments, scaffolds: bool) -> Path:
    """Where the graphs of a table are kept; another name whenever anything they depend on is another."""
    from rdkit import __version__

    return packed_path(
        Path(table.path).name.split(".")[0][:60] or "table",
        table.smiles.digest(),
        *(column.tobytes() for column in (table.numbers, table.targets.y, table.usable)),
        b"" if table.weight is None else table.weight.tobytes(),
        repr((table.path, table.target_columns, table.targets.class_names, table.task, table.on_invalid)),
        repr((table.smiles_column, table.findings, fragments, scaffolds, "molecules numbered", __version__)),
    )


def pack(table: Table, path: Path, fragments: Fragments, scaffolds: bool, processes: int | None) -> None:
    """Write the graphs of the usable rows, and what was found on the way, to `path`.

    Of a large table chunks are kept in a folder beside `path` until it is complete: what was ended in the middle
    goes on from there.
    """
    parts = path.with_suffix(".parts")
    try:
        _pack(table, path, parts, fragments, scaffolds, processes)
    except DataError:
        shutil.rmtree(parts, ignore_errors=True)  # another table, or other options, will have another name
        raise
    shutil.rmtree(parts, ignore_errors=True)


def check_room(folder: Path, smiles: Sequence[str]) -> str:
    """How much room on disk the graphs of molecules need, in words; refused where there is less."""
    need = _BYTES_ON_THE_WAY * sum(map(len, smiles))
    free = shutil.disk_usage(folder).free
    if need > free:
        raise DataError(
            f"the graphs of {len(smiles):,} molecules need about {_size(need)} until they are written, and "
            f"{folder} has {_size(free)} left; make room, or set LSPE_CACHE to a folder on another disk"
        )
    return _size(need)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def _pack(table: Table, path: Path, parts: Path, fragments: Fragments, scaffolds: bool, processes: int | None) -> None:
    positions = np.flatnonzero(table.usable)
    smiles = table.smiles.select(positions)
    work = partial(read_smiles, features=_FEATURES, fragments=fragments, scaffolds=scaffolds)
    unreadable: list[Finding] = []
    cut: list[Finding] = []
    kept: list[Index] = []
    codes: list[Array] = []
    scaffold_numbers: dict[str, int] = {}
    groups = array("q")
    label = f"molecules to graphs (about {check_room(path.parent, smiles)} on disk)"
    with PackedWriter(path) as writer:
        for begin, reading in iter_kept_readings(work, smiles, parts, processes=processes, label=label):
            for row, reason in reading.reasons.items():
                unreadable.append(_finding(table, positions[begin + row], reason, "left out"))
            if unreadable and table.on_invalid == "error":
                raise DataError(f"{table.path}: {first_few(unreadable)}. {MEND}")
            rows = positions[begin + reading.rows]
            if fragments == "largest":
                cut += [
                    _finding(table, row, f"has {parts} fragments", "largest fragment kept")
                    for row, parts in zip(rows, reading.fragments, strict=True)
                    if parts > 1
                ]
            groups.extend(scaffold_numbers.setdefault(one, len(scaffold_numbers)) for one in reading.scaffolds)
            kept.append(rows)
            part = to_packed(reading.arrays, _columns(table, rows))
            codes.append(fingerprints(part))
            writer.append(part)
        used = np.concatenate([np.empty(0, dtype=np.int64), *kept])
        if not len(used):
            raise DataError(f"{table.path}: no row is left. {first_few(unreadable)}")
        notes = check_something_to_learn(
            replace(table.targets, y=table.targets.y[used]), table.target_columns, table.path
        )
        pairs = find_duplicates(np.concatenate(codes), lambda one: canonical(table.smiles[used[one]], fragments))
        findings = (*table.findings, *unreadable, *cut, *_duplicates(table, used, pairs))
        about = Description(
            name=Path(table.path).name,
            task=table.task,
            num_outputs=len(table.targets.class_names) or len(table.target_columns),
            task_names=table.target_columns,
            features=_FEATURES,
            source=table.path,
            class_names=table.targets.class_names,
            report=Report(len(table), len(used), tuple(sorted(findings, key=lambda one: one.row)), tuple(notes)),
        )
        extra = {"molecule": np.arange(len(used))}
        for number, first in pairs:
            extra["molecule"][number] = first
        if scaffolds:
            by_text = np.argsort(np.array(list(scaffold_numbers)))
            extra["scaffold"] = np.argsort(by_text)[np.array(groups, dtype=np.int64)]
        writer.finish(about.to_dict(), extra)


def _columns(table: Table, rows: Index) -> dict[str, Array]:
    y = table.targets.y[rows]
    columns = {
        "y": y if table.task == "multiclass" else y.astype(np.float32),
        "table_row": table.numbers[rows],
    }
    if table.weight is not None:
        columns["weight"] = table.weight[rows].astype(np.float32)
    return columns


def _finding(table: Table, position: int, problem: str, action: str) -> Finding:
    return Finding(int(table.numbers[position]), table.smiles_column, table.smiles[position], problem, action)


def _duplicates(table: Table, rows: Index, pairs: Iterable[tuple[int, int]]) -> Iterable[Finding]:
    """Every row whose molecule stood in an earlier row already, with what the two say of the targets."""
    for number, first in pairs:
        row, earlier = rows[number], rows[first]
        same = np.array_equal(table.targets.y[earlier], table.targets.y[row], equal_nan=True)
        problem = f"is the molecule of row {table.numbers[earlier]}, with {'the same' if same else 'another'} target"
        yield _finding(table, row, problem, KEPT)
