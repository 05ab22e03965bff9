"""A person's own table of molecules: SMILES, targets, and whatever is wrong with them.

>>> table = read_table("solubility.csv", targets=["logS"])
>>> data = table.to_graphs(split="scaffold")
>>> print(data.report.summary())
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from lspe.data.errors import DataError
from lspe.data.graphdata import Description, GraphData
from lspe.data.molecules.conversion import iter_readings, to_packed
from lspe.data.molecules.descriptors import describe
from lspe.data.molecules.smiles import canonical, read_smiles
from lspe.data.packed.cache import build_once, packed_path
from lspe.data.packed.container import Array, ArrayWriter, open_arrays
from lspe.data.packed.pointers import Index
from lspe.data.packed.writer import PackedWriter
from lspe.data.report import Finding, Report, first_few
from lspe.data.splits import Fractions, Splits, column_split, k_folds, random_split, scaffold_split
from lspe.data.table.columns import (
    check_column,
    find_name_column,
    find_smiles_column,
    find_split_column,
    find_target_columns,
    may_be_about_rows,
)
from lspe.data.table.duplicates import find_duplicates, fingerprints
from lspe.data.table.reading import iter_table_chunks
from lspe.data.table.targets import LARGEST, Targets, check_something_to_learn, read_targets, to_number, to_numbers
from lspe.data.words import DescriptorKind, Duplicates, Fragments, OnInvalid, SplitKind, TaskKind
from lspe.features import OGBFeatures

_FEATURES = OGBFeatures()
_DESCRIPTORS_VERSION = 1
_MEND = "Mend the rows, or leave them out with on_invalid='skip' (--on-invalid skip)."


@dataclass(frozen=True)
class Table:
    """A table whose columns are understood: which holds the molecules, which the targets, what these mean.

    It keeps every row of the file, in order. `usable` [R] says which have a label (and a weight, where
    there is such a column); `numbers` [R] are the rows' numbers as a spreadsheet shows them; `values` are all cells by
    column. `extra` [R, E] are numbers of `extra_columns` that are known of each molecule, NaN where one is missing.
    `split_column` says train, val or test in each row: as named, else a column called split.
    """

    path: str
    smiles_column: str
    target_columns: tuple[str, ...]
    targets: Targets
    smiles: Sequence[str]
    numbers: Index
    usable: Array
    weight: Array | None
    extra_columns: tuple[str, ...]
    extra: Array
    split_column: str | None
    values: Mapping[str, Sequence[str]]
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
        """The molecules as graphs with OGB's features, divided into parts or (with `folds`) into folds, at random
        or with molecules of one scaffold together; with the `descriptors` asked for. Rows of the same molecule are
        never in two parts; `duplicates` says whether all, the first or their mean is learned from.

        Converted once: the same table with the same options is read from the cache the next time. Each
        graph has its row's number as ``table_row``. What became of which row stands in ``report``.
        """
        if split is None:
            split = "random" if self.split_column is None or folds is not None else "column"
        if split == "column" and self.split_column is None:
            raise DataError(f"{self.path}: to divide by a column, name it: split_column=... (--split-column)")
        if split == "column" and folds is not None:
            raise DataError(f"{self.path}: a column divides into parts, not into folds; leave out one of the two")
        path = self._packed_path(fragments, split == "scaffold")

        def build(path: Path) -> None:
            self._pack(path, fragments, split == "scaffold", processes)

        data = GraphData.open_or_build(path, build)
        data = self._with_molecules(data)
        data = replace(
            data, descriptors={kind: self._described(data, kind, fragments, processes) for kind in descriptors}
        )
        scaffolds, molecules = _beside(data, "scaffold"), _beside(data, "molecule")
        assert molecules is not None
        repeated = len(np.unique(molecules)) < len(molecules)
        if split == "column":
            data = replace(data, groups=molecules if repeated else None, division=f"as {self.split_column!r} says")
        else:
            data = replace(data, division="by scaffold" if split == "scaffold" else "at random")
            data = replace(data, groups=scaffolds if scaffolds is not None else molecules if repeated else None)
        try:
            if folds is not None:
                divided = replace(data, folds=self._folds(data, folds, seed))
            else:
                divided = replace(data, splits=self._splits(data, split, fractions, seed))
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None
        return divided if duplicates == "keep" or not repeated else _without_duplicates(divided, molecules, duplicates)

    def _with_molecules(self, data: GraphData) -> GraphData:
        """The same data with the SMILES of each graph, and its name where the table has names."""
        positions = np.searchsorted(self.numbers, data.graphs.column("table_row")).tolist()
        name = find_name_column([column for column in self.values if column not in self.target_columns])
        names = None if name is None else [self.values[name][position] for position in positions]
        smiles = [self.smiles[position] for position in positions]
        return replace(
            data,
            smiles=smiles,
            smiles_column=self.smiles_column,
            molecule_names=names,
            extra_names=self.extra_columns,
            extra=self.extra[positions],
        )

    def _described(self, data: GraphData, kind: DescriptorKind, fragments: Fragments, processes: int | None) -> Array:
        """Descriptors of every graph; computed once and kept beside the packed set."""
        assert data.graphs.path is not None, "a table's graphs are mapped from their file"
        path = data.graphs.path.with_name(f"{data.graphs.path.stem}.{kind}-v{_DESCRIPTORS_VERSION}.lspe")

        def build() -> None:
            assert data.smiles is not None
            with ArrayWriter(path) as writer:
                writer.append("descriptors", describe(data.smiles, kind, fragments=fragments, processes=processes))
                writer.finish({"kind": kind})

        return build_once(path, build, lambda: open_arrays(path).arrays["descriptors"])

    def _folds(self, data: GraphData, folds: int, seed: int) -> list[Splits]:
        return k_folds(len(data.graphs), folds, seed=seed, labels=data.strata, groups=data.groups)

    def _splits(self, data: GraphData, split: str, fractions: Fractions, seed: int) -> Splits:
        labels = data.strata
        if split == "scaffold" and data.groups is not None:
            return scaffold_split(data.groups, fractions)
        if split == "column" and self.split_column is not None:
            rows = data.graphs.column("table_row").tolist()
            value = dict(zip(self.numbers.tolist(), self.values[self.split_column], strict=True))
            return column_split([value[row] for row in rows], rows, labels)
        return random_split(len(data.graphs), fractions, seed=seed, labels=labels, groups=data.groups)

    def align(self, data: GraphData, values: Array) -> Array:
        """Values a graph of `data`, put in the order of the table's rows; NaN where a row has no graph."""
        aligned = np.full((len(self), *values.shape[1:]), np.nan)
        aligned[np.searchsorted(self.numbers, data.graphs.column("table_row"))] = values
        return aligned

    def _packed_path(self, fragments: Fragments, scaffolds: bool) -> Path:
        from rdkit import __version__

        return packed_path(
            Path(self.path).name.split(".")[0][:60] or "table",
            "\0".join(self.smiles),
            *(column.tobytes() for column in (self.numbers, self.targets.y, self.usable)),
            b"" if self.weight is None else self.weight.tobytes(),
            repr((self.path, self.target_columns, self.targets.class_names, self.task, self.on_invalid)),
            repr((self.smiles_column, self.findings, fragments, scaffolds, "molecules numbered", __version__)),
        )

    def _pack(self, path: Path, fragments: Fragments, scaffolds: bool, processes: int | None) -> None:
        """Write the graphs of the usable rows, and what was found on the way, to `path`."""
        positions = np.flatnonzero(self.usable)
        smiles = [self.smiles[position] for position in positions.tolist()]
        work = partial(read_smiles, features=_FEATURES, fragments=fragments, scaffolds=scaffolds)
        unreadable: list[Finding] = []
        cut: list[Finding] = []
        kept: list[Index] = []
        codes: list[Array] = []
        groups: list[str] = []
        with PackedWriter(path) as writer:
            for begin, reading in iter_readings(work, smiles, processes=processes):
                for row, reason in reading.reasons.items():
                    unreadable.append(self._finding(positions[begin + row], reason, "left out"))
                if unreadable and self.on_invalid == "error":
                    raise DataError(f"{self.path}: {first_few(unreadable)}. {_MEND}")
                rows = positions[begin + reading.rows]
                if fragments == "largest":
                    cut += [
                        self._finding(row, f"has {parts} fragments", "largest fragment kept")
                        for row, parts in zip(rows, reading.fragments, strict=True)
                        if parts > 1
                    ]
                groups += reading.scaffolds
                kept.append(rows)
                part = to_packed(reading.arrays, self._columns(rows))
                codes.append(fingerprints(part))
                writer.append(part)
            used = np.concatenate([np.empty(0, dtype=np.int64), *kept])
            if not len(used):
                raise DataError(f"{self.path}: no row is left. {first_few(unreadable)}")
            notes = check_something_to_learn(
                replace(self.targets, y=self.targets.y[used]), self.target_columns, self.path
            )
            pairs = find_duplicates(np.concatenate(codes), lambda one: canonical(self.smiles[used[one]], fragments))
            findings = (*self.findings, *unreadable, *cut, *self._duplicates(used, pairs))
            about = Description(
                name=Path(self.path).name,
                task=self.task,
                num_outputs=len(self.targets.class_names) or len(self.target_columns),
                task_names=self.target_columns,
                features=_FEATURES,
                source=self.path,
                class_names=self.targets.class_names,
                report=Report(len(self), len(used), tuple(sorted(findings, key=lambda one: one.row)), tuple(notes)),
            )
            extra = {"molecule": np.arange(len(used))}
            for number, first in pairs:
                extra["molecule"][number] = first
            if scaffolds:
                extra["scaffold"] = np.unique(np.array(groups), return_inverse=True)[1]
            writer.finish(about.to_dict(), extra)

    def _columns(self, rows: Index) -> dict[str, Array]:
        y = self.targets.y[rows]
        columns = {
            "y": y if self.task == "multiclass" else y.astype(np.float32),
            "table_row": self.numbers[rows],
        }
        if self.weight is not None:
            columns["weight"] = self.weight[rows].astype(np.float32)
        return columns

    def _finding(self, position: int, problem: str, action: str) -> Finding:
        return Finding(int(self.numbers[position]), self.smiles_column, self.smiles[position], problem, action)

    def _duplicates(self, rows: Index, pairs: Iterable[tuple[int, int]]) -> Iterable[Finding]:
        """Every row whose molecule stood in an earlier row already, with what the two say of the targets."""
        for number, first in pairs:
            row, earlier = rows[number], rows[first]
            same = np.array_equal(self.targets.y[earlier], self.targets.y[row], equal_nan=True)
            problem = f"is the molecule of row {self.numbers[earlier]}, with {'the same' if same else 'another'} target"
            yield self._finding(row, problem, "duplicate kept")


def read_table(
    path: str | os.PathLike[str],
    *,
    smiles: str | None = None,
    targets: str | Sequence[str] | None = None,
    task: TaskKind | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
    split_column: str | None = None,
    on_invalid: OnInvalid = "error",
    to_learn: bool = True,
) -> Table:
    """Read a CSV, TSV or Parquet file (gzip too) with a column of SMILES and one or more targets.

    Columns that are not named are guessed: the one called ``smiles`` (or much like it), and as target what
    is left where that is clear. The `task` is found out: text is classes, nothing but 0 and 1 is
    ``binary``, other numbers are ``regression``. Empty cells are missing labels, where another target of
    the row has a label.

    `extra` columns hold numbers that are known of each molecule, beside its structure.

    What to do with a row that cannot be used (a target that is no number, no label at all, later a molecule
    that cannot be read) says `on_invalid`: ``error`` stops, ``skip`` leaves the row out, ``nan`` counts an
    unreadable target as missing and leaves a row out only where nothing is left of it.
    :attr:`GraphData.report` lists every such row. A table with nothing but one label is refused where it is `to_learn`
    from.
    """
    name = str(path)
    chunks = list(iter_table_chunks(path))
    columns = chunks[0].columns
    smiles_column = find_smiles_column(columns, smiles, name)
    for wanted in (weight, split_column, *extra):
        if wanted is not None:
            check_column(wanted, columns, name)
    used = {smiles_column, weight, split_column, *extra}
    needed: set[str | None] = set(columns)
    if targets is not None:
        given = [targets] if isinstance(targets, str) else targets
        needed = {*used, *given, *(column for column in columns if may_be_about_rows(column))}
    values = {
        column: [value for chunk in chunks for value in chunk.column(column)] for column in columns if column in needed
    }
    decimal_comma = chunks[0].decimal_comma
    numbers = np.array([number for chunk in chunks for number in chunk.numbers], dtype=np.int64)
    if not len(numbers):
        raise DataError(f"{name} has a header ({', '.join(columns)}) but no rows")
    names = find_target_columns(columns, values, targets, used, name)
    found = read_targets({column: values[column] for column in names}, task, name, decimal_comma=decimal_comma)

    usable, findings = _labelled_rows(found, names, values, numbers, on_invalid)
    weights = None
    if weight is not None:
        weights = np.array([_weight(value, decimal_comma) for value in values[weight]])
        for row in np.flatnonzero(np.isnan(weights)).tolist():
            problem = "is no weight (a number of at least 0)"
            findings.append(Finding(int(numbers[row]), weight, values[weight][row], problem, "left out"))
        usable &= ~np.isnan(weights)
        if not weights[usable].any():
            raise DataError(f"{name}: the column {weight!r} gives no row a weight above 0")
    known = np.full((len(numbers), len(extra)), np.nan)
    for position, column in enumerate(extra):
        cells = to_numbers(values[column], decimal_comma=decimal_comma)
        known[:, position] = [np.nan if cell is None else cell for cell in cells]
        for row in [row for row, cell in enumerate(cells) if cell is None]:
            findings.append(Finding(int(numbers[row]), column, values[column][row], "is not a number", "left out"))
            usable[row] = False
    if findings and on_invalid == "error":
        raise DataError(f"{name}: {first_few(findings)}. {_MEND}")
    if not usable.any():
        raise DataError(f"{name}: no row is left. {first_few(findings)}")
    if to_learn:
        check_something_to_learn(replace(found, y=found.y[usable]), names, name)
    return Table(
        path=name,
        smiles_column=smiles_column,
        target_columns=names,
        targets=found,
        smiles=values[smiles_column],
        numbers=numbers,
        usable=usable,
        weight=weights,
        extra_columns=tuple(extra),
        extra=known.astype(np.float32),
        split_column=split_column or find_split_column(values, names),
        values=values,
        on_invalid=on_invalid,
        findings=tuple(findings),
    )


def _labelled_rows(
    targets: Targets,
    names: Sequence[str],
    values: Mapping[str, Sequence[str]],
    numbers: Index,
    on_invalid: OnInvalid,
) -> tuple[Array, list[Finding]]:
    """Which rows have a label that can be used, and what is wrong with the others."""
    usable = targets.labelled
    unreadable = [row for row, *_ in targets.problems]
    if on_invalid != "nan":
        usable[unreadable] = False
    findings = [
        Finding(int(numbers[row]), column, value, problem, "counted as missing" if usable[row] else "left out")
        for row, column, value, problem in targets.problems
    ]
    for row in np.setdiff1d(np.flatnonzero(~usable), unreadable).tolist():
        findings.append(Finding(int(numbers[row]), names[0], values[names[0]][row], "is no label", "left out"))
    return usable, findings


def _weight(value: str, decimal_comma: bool) -> float:
    number = to_number(value, decimal_comma=decimal_comma)
    return number if number is not None and 0 <= number <= LARGEST else np.nan


def _beside(data: GraphData, name: str) -> Array | None:
    """A number for each graph that was written beside it: its ``molecule``, or where asked for its ``scaffold``."""
    assert data.graphs.path is not None, "a table's graphs are mapped from their file"
    return open_arrays(data.graphs.path, verify=False).arrays.get(name)


def _without_duplicates(data: GraphData, molecules: Array, duplicates: Duplicates) -> GraphData:
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
    return replace(data, splits=splits, folds=folds, graphs=replace(data.graphs, graph=columns, path=None))
