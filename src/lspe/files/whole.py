"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lspe.errors import UserError


@contextmanager
def complete_or_nothing(path: Path) -> Iterator[Path]:
    """A file to write to that gets the name ``path`` only when everything went well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_folder_of(path: Path) -> None:
    """Say so where a file ``path`` cannot be written because of the folder it would be in."""
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file in it")
