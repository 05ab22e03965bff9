"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lspe.errors import UserError

_UNFINISHED = ".tmp"


@contextmanager
def complete_or_nothing(path: Path) -> Iterator[Path]:
    """A file to write to that gets the name ``path`` only when everything went well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_UNFINISHED}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def clear_unfinished(folder: Path) -> None:
    """Delete what processes that were killed had begun to write into a folder that is nobody else's now."""
    for path in folder.glob(f".*{_UNFINISHED}"):
        path.unlink(missing_ok=True)


def check_folder_of(path: Path) -> None:
    """Say so where a file ``path`` cannot be written because of the folder it would be in."""
    if not os.path.isdir(path.parent):
        raise UserError(f"{path}: there is no folder {path.parent}; make it first")
    if os.path.isdir(path):
        raise UserError(f"{path} is a folder; name a file in it")


def check_picture(path: Path, endings: Sequence[str] = (".png", ".svg")) -> None:
    """Say so where no picture can be written to ``path``."""
    if path.suffix not in endings:
        raise UserError(f"{path}: a picture is written to a file that ends in {' or '.join(endings)}")
    if os.path.isdir(path):
        raise UserError(f"{path} is a folder; name a file in it")


def make_folder(folder: Path) -> None:
    """Make a folder with all those above it, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if os.path.isfile(folder) else error.strerror or error
        raise UserError(f"{folder} cannot be used as a folder: {reason}") from None
