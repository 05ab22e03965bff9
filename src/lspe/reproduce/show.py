"""Tables of what there is, without training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lspe.reproduce.results import Result, collect_tables, write_tables
from lspe.reproduce.small_files import keep_small_files
from lspe.reproduce.tables import choose_rows, rows_found_in, rows_of_table


def show(
    names: Sequence[str], folder: Path, *, only: Sequence[str] = (), results: Path | None = None
) -> dict[str, list[Result]]:
    """The results of some tables by name, or of all rows found in ``folder``, by data set, if no name is given.

    The small files of runs suffice (:data:`~lspe.reproduce.small_files.SMALL_FILES`). With ``results`` the tables and
    these files are written there.
    """
    tables = {name: rows_of_table(name) for name in names} or rows_found_in(folder)
    tables = choose_rows(tables, only)
    found = collect_tables(tables, folder)
    if results is not None:
        keep_small_files(tables, folder, results)
        write_tables(found, results)
    return found
