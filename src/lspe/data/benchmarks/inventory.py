"""What there is: each benchmark, where it would come from, what is prepared, and whether that is sound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lspe.data.benchmarks.catalogue import available
from lspe.data.benchmarks.download import find
from lspe.data.errors import CorruptFileError
from lspe.data.packed.cache import packed_folder
from lspe.data.packed.container import open_arrays
from lspe.locations import Root


@dataclass(frozen=True)
class Entry:
    """A benchmark: one line about it, its source (a file, ``built in`` or ``download``), its prepared files."""

    name: str
    summary: str
    source: str
    prepared: tuple[Path, ...]


def inventory(root: Root = None) -> list[Entry]:
    """Every benchmark and what is there of it."""
    entries = []
    for benchmark in available().values():
        found = next((str(path) for file in benchmark.files if (path := find(file, root))), None)
        source = found or ("download" if benchmark.files else "built in")
        entries.append(Entry(benchmark.name, benchmark.summary, source, tuple(prepared_files(benchmark.name))))
    return entries


def prepared_files(name: str | None = None) -> list[Path]:
    """The packed sets (and their encodings) in the cache, of one set or of all."""
    pattern = re.compile(rf"{re.escape(name)}-[0-9a-f]{{16}}\..*" if name else ".*")
    files = sorted(packed_folder().glob("*.lspe"))
    return [file for file in files if pattern.fullmatch(file.name)]


def verify(names: Sequence[str] = ()) -> dict[Path, str | None]:
    """Check every prepared file (of the sets `names`, if given) against its checksums: what is wrong, or ``None``."""
    files = [file for name in names for file in prepared_files(name)] if names else prepared_files()
    return {file: _problem(file) for file in files}


def _problem(file: Path) -> str | None:
    try:
        open_arrays(file)
    except CorruptFileError as error:
        return str(error)
    return None
