"""The same molecule in two rows of a table, found without comparing every molecule's canonical SMILES.

Each graph gets a number that does not depend on the order of its atoms (a few rounds of the 1-WL refinement). Only
molecules that share it are looked at by RDKit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lspe.data.errors import DataError
from lspe.data.graphdata import GraphData
from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index
from lspe.data.packed.sets import PackedGraphs
from lspe.data.report import Report
from lspe.data.words import Duplicates

KEPT = "duplicate kept"
_INSTEAD: dict[Duplicates, str] = {
    "first": "duplicate left out",
    "mean": "duplicate, counted in the mean of its molecule",
}
"""What is done with a row whose molecule stood in an earlier one."""

_ROUNDS = 3
_ATOM_FEATURES = (0, 2, 3, 4, 5, 7, 8)  # OGB's without chirality, which depends on the order of the neighbours
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)

Codes = NDArray[np.uint64]


def fingerprints(molecules: PackedGraphs) -> Codes:
    """A number for each molecule, the same however its atoms are numbered, [G]."""
    atoms = _mix_columns(molecules.node["x"][:, _ATOM_FEATURES])
    bonds = _mix(molecules.edge["edge_attr"][:, 0].astype(np.uint64) + np.uint64(1))
    first_node = np.repeat(molecules.node_ptr[:-1], np.diff(molecules.edge_ptr))
    source, target = molecules.source + first_node, molecules.target + first_node
    for _ in range(_ROUNDS):
        messages = _mix(atoms[source] + bonds)
        atoms = _mix(atoms * _MULTIPLIER + _sums(messages, np.bincount(target, minlength=len(atoms))))
    return _mix(_sums(atoms, np.diff(molecules.node_ptr)))


def find_duplicates(codes: Codes, canonical: Callable[[int], str]) -> list[tuple[int, int]]:
    """Pairs (number of a molecule, number of the first one like it), by ascending number.

    `canonical` gives the canonical SMILES of the molecule of a number; it is asked only where codes agree.
    """
    _, code, count = np.unique(codes, return_inverse=True, return_counts=True)
    first: dict[str, int] = {}
    pairs = []
    for number in np.flatnonzero(count[code] > 1).tolist():
        earlier = first.setdefault(canonical(number), number)
        if earlier != number:
            pairs.append((number, earlier))
    return pairs


def without_duplicates(data: GraphData, molecules: Array, duplicates: Duplicates) -> GraphData:
    """The same data with one row per molecule in every part: the first, or one with the mean of the targets."""
    first = molecules == np.arange(len(molecules))
    splits = {name: part[first[part]] for name, part in data.splits.items()}
    folds = [{name: part[first[part]] for name, part in fold.items()} for fold in data.folds]
    columns = dict(data.graphs.graph)
    if duplicates == "mean":
        if data.task != "regression":
            raise DataError(
                f"{data.source}: the mean of labels of a molecule is no label. Say which to take: duplicates='first' "
                "or 'keep' (--duplicates)"
            )
        known = ~np.isnan(columns["y"])
        total, count = np.zeros(columns["y"].shape), np.zeros(columns["y"].shape)
        np.add.at(total, molecules, np.where(known, columns["y"], 0))
        np.add.at(count, molecules, known)
        columns["y"] = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0).astype(np.float32)
    return replace(
        data,
        splits=splits,
        folds=folds,
        graphs=replace(data.graphs, graph=columns, path=None),
        report=data.report and _as_done(data.report, duplicates),
    )


def _as_done(report: Report, duplicates: Duplicates) -> Report:
    """What became of the rows that a table's own report calls kept."""
    findings = tuple(
        replace(one, action=_INSTEAD[duplicates]) if one.action == KEPT else one for one in report.findings
    )
    left_out = sum(one.action == KEPT for one in report.findings) if duplicates == "first" else 0
    return replace(report, findings=findings, used=report.used - left_out)


def _mix(values: Codes) -> Codes:
    values = (values ^ (values >> _SHIFT)) * _MULTIPLIER
    return values ^ (values >> _SHIFT)


def _mix_columns(columns: NDArray[np.uint8]) -> Codes:
    code = np.zeros(len(columns), dtype=np.uint64)
    for column in columns.T:
        code = _mix(code * _MULTIPLIER + column + np.uint64(1))
    return code


def _sums(values: Codes, counts: Index) -> Codes:
    """The sum of each run of `counts` values."""
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
    end = np.cumsum(counts)
    return total[end] - total[end - counts]
