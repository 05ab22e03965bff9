"""A person's own table of molecules: SMILES, targets, and whatever is wrong with them.

>>> table = read_table("solubility.csv", targets=["logS"])
>>> data = table.to_graphs(split="scaffold")
>>> print(data.report.summary())
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lspe.data.errors import DataError
from lspe.data.graphdata import GraphData
from lspe.data.molecules.kept_descriptors import kept_descriptors
from lspe.data.packed.container import Array, open_arrays
from lspe.data.packed.pointers import Index
from lspe.data.report import Finding
from lspe.data.splits import Fractions, Splits, column_split, k_folds, random_split, scaffold_split, time_split
from lspe.data.table.columns import find_name_column, unused_split_column
from lspe.data.table.duplicates import without_duplicates
from lspe.data.table.packing import pack, packed_file
from lspe.data.table.targets import Targets
from lspe.data.table.texts import TextColumn
from lspe.data.table.times import read_times
from lspe.data.words import DescriptorKind, Duplicates, Fragments, OnInvalid, SplitKind, TaskKind

_DIVISIONS: dict[str, str] = {"random": "at random", "scaffold": "by scaffold", "time": "by time"}
"""In words; a column that says how has a name."""


@dataclass(frozen=True)
class Table:
    """A table whose columns are understood: which holds the molecules, which the targets, what these mean.

    It keeps every row of the file, in order. `usable` [R] says which have a label (and a weight, where
    there is such a column); `numbers` [R] are the rows' numbers as a spreadsheet shows them; `values` are all cells by
    column. `extra` [R, E] are numbers of `extra_columns` that are known of each molecule, NaN where one is missing.
    `split_column` says train, val or test in each row, as named, else a column called split; or when each row is from.
    """

    path: str
    smiles_column: str
    target_columns: tuple[str, ...]
    targets: Targets
    smiles: TextColumn
    numbers: Index
    usable: Array
    weight: Array | None
    extra_columns: tuple[str, ...]
    extra: Array
    split_column: str | None
    values: Mapping[str, TextColumn]
    on_invalid: OnInvalid
    findings: tuple[Finding, ...]

    def __len__(self) -> int:
        return len(self.smiles)

    @property
    def task(self) -> TaskKind:
        return self.targets.task

    def to_graphs(
        self,
        *,
        fragments: Fragments = "keep",
        duplicates: Duplicates = "keep",
        split: SplitKind | None = "random",
        folds: int | None = None,
        fractions: Fractions = (0.8, 0.1, 0.1),
        seed: int = 0,
        descriptors: Iterable[DescriptorKind] = (),
        processes: int | None = None,
    ) -> GraphData:
        """The molecules as graphs with OGB's features, divided into parts or (with `folds`) into folds, at random,
        with molecules of one scaffold together, or by a column; with the `descriptors` asked for. Rows of the same
        molecule are never in two parts, unless a column says so; `duplicates` says whether all, the first or their mean
        is learned from.

        Converted once: the same table with the same options is read from the cache the next time. Each
        graph has its row's number as ``table_row``. What became of which row stands in ``report``.
        """
        if split is None:
            split = "random" if self.split_column is None or folds is not None else "column"
        if split in ("column", "time") and self.split_column is None:
            what = "a column" if split == "column" else "time, which a column tells"
            raise DataError(f"{self.path}: to divide by {what}, name it: split_column=... (--split-column)")
        if split in ("column", "time") and folds is not None:
            raise DataError(f"{self.path}: a column divides into parts, not into folds; leave out one of the two")
        path = packed_file(self, fragments, split == "scaffold")

        def build(path: Path) -> None:
            pack(self, path, fragments, split == "scaffold", processes)

        data = GraphData.open_or_build(path, build)
        data = self._with_molecules(data)
        if data.report is not None:
            notes = (*data.report.notes, *self.targets.notes, *(self._unused_split() if split == "random" else ()))
            data = replace(data, report=replace(data.report, notes=notes))
        smiles = data.smiles
        assert smiles is not None
        data = replace(
            data,
            descriptors={
                kind: kept_descriptors(data.graphs.path, lambda: smiles, kind, fragments=fragments, processes=processes)
                for kind in descriptors
            },
        )
        scaffolds, molecules = _beside(data, "scaffold"), _beside(data, "molecule")
        assert molecules is not None
        repeated = len(np.unique(molecules)) < len(molecules)
        groups = scaffolds if scaffolds is not None else molecules if repeated else None
        data = replace(data, groups=groups, division=_DIVISIONS.get(split, f"as {self.split_column!r} says"))
        try:
            if folds is not None:
                divided = replace(data, folds=self._folds(data, folds, seed))
            else:
                divided = replace(data, splits=self._splits(data, split, fractions, seed))
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None
        return divided if duplicates == "keep" or not repeated else without_duplicates(divided, molecules, duplicates)

    def _unused_split(self) -> tuple[str, ...]:
        """Why a column that is called split is not used, if there is one."""
        note = "" if self.split_column else unused_split_column(self.values, self.target_columns)
        return (note,) if note else ()

    def _with_molecules(self, data: GraphData) -> GraphData:
        """The same data with the SMILES of each graph, and its name where the table has names."""
        positions = np.searchsorted(self.numbers, data.graphs.column("table_row"))
        name = find_name_column([column for column in self.values if column not in self.target_columns])
        return replace(
            data,
            smiles=self.smiles.select(positions),
            smiles_column=self.smiles_column,
            molecule_names=None if name is None else self.values[name].select(positions),
            extra_names=self.extra_columns,
            extra=self.extra[positions],
        )

    def _folds(self, data: GraphData, folds: int, seed: int) -> list[Splits]:
        return k_folds(len(data.graphs), folds, seed=seed, labels=data.strata, groups=data.groups)

    def _splits(self, data: GraphData, split: str, fractions: Fractions, seed: int) -> Splits:
        labels = data.strata
        if split == "scaffold" and data.groups is not None:
            return scaffold_split(data.groups, fractions, labels)
        if split in ("column", "time") and self.split_column is not None:
            rows = data.graphs.column("table_row")
            said = self.values[self.split_column].select(np.searchsorted(self.numbers, rows))
            if split == "column":
                return column_split(said, rows, labels)
            return time_split(read_times(said, rows, self.split_column), fractions, groups=data.groups)
        return random_split(len(data.graphs), fractions, seed=seed, labels=labels, groups=data.groups)

    def align(self, data: GraphData, values: Array) -> Array:
        """Values a graph of `data`, put in the order of the table's rows; NaN where a row has no graph."""
        aligned = np.full((len(self), *values.shape[1:]), np.nan)
        aligned[np.searchsorted(self.numbers, data.graphs.column("table_row"))] = values
        return aligned


def _beside(data: GraphData, name: str) -> Array | None:
    """A number for each graph that was written beside it: its ``molecule``, or where asked for its ``scaffold``."""
    assert data.graphs.path is not None, "a table's graphs are mapped from their file"
    return open_arrays(data.graphs.path, verify=False).arrays.get(name)
