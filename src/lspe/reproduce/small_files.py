"""What is worth keeping of runs when their checkpoints are not: enough to print the tables and to repeat the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lspe.experiment.value import CONFIG
from lspe.files import make_folder, write_text
from lspe.reproduce.tables import Row
from lspe.training.run import HISTORY, SUMMARY

SMALL_FILES = (CONFIG, HISTORY, SUMMARY)


def keep_small_files(tables: Mapping[str, Sequence[Row]], folder: Path, results: Path) -> None:
    """Copy the small files of all runs of some tables from ``folder`` to the same places below ``results``."""
    for row in {row for rows in tables.values() for row in rows}:
        for path in sorted((folder / row.name).rglob("*")):
            if path.name in SMALL_FILES:
                _copy(path, results / path.relative_to(folder))


def _copy(path: Path, to: Path) -> None:
    """Unless it is there as it is."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:  # another process goes on with the run and has just taken its summary away
        return
    if not to.is_file() or to.read_text(encoding="utf-8") != text:
        make_folder(to.parent)
        write_text(to, text)
