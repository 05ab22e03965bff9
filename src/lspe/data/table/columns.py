"""Which column of a table holds the molecules and which the targets: as said, else by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lspe.data.errors import DataError, shown
from lspe.data.splits import part_of
from lspe.data.table.targets import to_numbers

_SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "smile", "structure", "molecule", "mol")
_SPLIT_NAMES = ("split", "set", "subset")
_MOLECULE_NAMES = ("name", "compound", "compound_id", "mol_id", "molid", "id", "cas")
_NEVER_TARGETS = frozenset([*_MOLECULE_NAMES, *_SPLIT_NAMES, "index", "inchi", "inchikey", "fold", "weight"])


def find_smiles_column(columns: Sequence[str], given: str | None, name: str) -> str:
    """The column with the molecules: the one `given`, else the one whose name says so."""
    if given is not None:
        return check_column(given, columns, name)
    lower = {column.lower().replace(" ", "_"): column for column in columns}
    for candidate in _SMILES_NAMES:
        if candidate in lower:
            return lower[candidate]
    containing = [column for column in columns if "smiles" in column.lower()]
    if len(containing) == 1:
        return containing[0]
    problem = (
        f"several columns may hold SMILES ({', '.join(containing)})" if containing else "no column is called 'smiles'"
    )
    raise DataError(
        f"{name}: {problem}. Its columns are {', '.join(columns)}; the first row must name them. "
        "Say which holds the SMILES with smiles=... (--smiles-column)."
    )


def may_be_about_rows(column: str) -> bool:
    """Whether a column's name says that it holds names or parts of a division."""
    return column.lower() in (*_MOLECULE_NAMES, *_SPLIT_NAMES)


def find_split_column(values: Mapping[str, Sequence[str]], targets: Sequence[str]) -> str | None:
    """The column called split, or much like it, that says train, val or test in every row."""
    called = _called_split(values, targets)
    return next((column for column in called if values[column] and all(map(part_of, values[column]))), None)


def unused_split_column(values: Mapping[str, Sequence[str]], targets: Sequence[str]) -> str:
    """Why a column called split, or much like it, is not used, in words; '' where there is none."""
    for column in _called_split(values, targets):
        strange = next((cell for cell in values[column] if not part_of(cell)), None)
        if strange is not None:
            return f"the column {column!r} does not divide the rows: {shown(strange)} is none of train, val and test"
    return ""


def _called_split(values: Mapping[str, Sequence[str]], targets: Sequence[str]) -> list[str]:
    return [column for column in values if column.lower() in _SPLIT_NAMES and column not in targets]


def find_name_column(columns: Sequence[str]) -> str | None:
    """The column that says what a molecule is called."""
    lower = {column.lower(): column for column in columns}
    return next((lower[name] for name in _MOLECULE_NAMES if name in lower), None)


def check_column(wanted: str, columns: Sequence[str], name: str) -> str:
    if wanted not in columns:
        raise DataError(f"{name} has no column {wanted!r}; it has {', '.join(columns)}")
    return wanted


def find_target_columns(
    columns: Sequence[str],
    values: Mapping[str, Sequence[str]],
    given: str | Sequence[str] | None,
    used: set[str | None],
    name: str,
) -> tuple[str, ...]:
    """The columns to learn: those `given`, else what is left when everything that is surely none is taken
    away.
    """
    if given is not None:
        names = (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))
        if not names:
            raise DataError(f"{name}: no target was named")
        for column in names:
            check_column(column, columns, name)
            if column in used:
                raise DataError(f"{name}: the column {column!r} cannot be a target, it is used otherwise")
        return names
    candidates = [
        column
        for column in columns
        if column not in used and column.lower() not in _NEVER_TARGETS and "smiles" not in column.lower()
    ]
    if len(candidates) == 1 or (candidates and all(_is_binary(values[column]) for column in candidates)):
        return tuple(candidates)
    what = f"{', '.join(candidates)} could be" if candidates else "no column is left that could be"
    raise DataError(f"{name}: {what} the target. Name the columns to learn with targets=... (--target).")


def _is_binary(values: Sequence[str]) -> bool:
    """Whether nothing but 0 and 1, or words that mean them, stands in a column, and at least one of them."""
    numbers = to_numbers(values)
    return bool(len(numbers.known)) and not numbers.is_text.any() and bool(np.isin(numbers.known, (0.0, 1.0)).all())
