"""What was found wrong or noteworthy in a table, row by row, for the user to read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lspe.data.errors import shown
from lspe.files import write_table

MEND = "Mend the rows, or leave them out with on_invalid='skip' (--on-invalid skip)."
"""What to do about findings that stop everything."""


@dataclass(frozen=True)
class Finding:
    """One cell: its row as a spreadsheet numbers it, its column and value, what is wrong, and what was
    done.
    """

    row: int
    column: str
    value: str
    problem: str
    action: str


@dataclass(frozen=True)
class Report:
    """Every row that was left out, changed or noted, and remarks on the table as a whole."""

    rows: int
    used: int
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the findings as a table of their own."""
        columns = [field.name for field in fields(Finding)]
        write_table(Path(path), [asdict(one) for one in self.findings], columns=columns)

    def summary(self) -> str:
        """One line per kind of finding."""
        lines = [f"{self.used:,} of {self.rows:,} rows used"]
        counts: dict[str, int] = {}
        for finding in self.findings:
            counts[finding.action] = counts.get(finding.action, 0) + 1
        lines += [f"{count:,} × {action}" for action, count in counts.items()]
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Report:
        """The inverse of :meth:`to_dict`."""
        findings = tuple(Finding(**one) for one in values["findings"])
        return Report(values["rows"], values["used"], findings, tuple(values["notes"]))


def first_few(findings: Sequence[Finding], count: int = 3) -> str:
    """The first findings in words, and how many more there are."""
    words = [f"row {one.row}, column {one.column!r}: {shown(one.value)} {one.problem}" for one in findings[:count]]
    more = len(findings) - count
    return "; ".join(words) + (f"; and {more:,} more" if more > 0 else "")
