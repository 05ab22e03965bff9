"""Where packed sets are kept, and how two processes that need the same one keep out of each other's way."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lspe.data.errors import CorruptFileError, DataError
from lspe.data.packed.container import digest_of, digest_of_file
from lspe.locations import cache_root, is_writable

Result = TypeVar("Result")
_CONVERSION_VERSION = "1"


def packed_path(name: str, *contents: Path | bytes | str) -> Path:
    """The packed file of set `name`, called after all it depends on: files' contents, values, our conversion."""
    digests = [digest_of_file(one) if isinstance(one, Path) else digest_of(one) for one in contents]
    return packed_folder() / f"{name}-{digest_of(_CONVERSION_VERSION, *digests)[:16]}.lspe"


def packed_folder() -> Path:
    """Where packed sets and their encodings are kept."""
    return cache_root() / "packed"


def build_once(path: Path, build: Callable[[], None], read: Callable[[], Result]) -> Result:
    """What `read` gives once `path` exists; `build` makes it first where it is missing or damaged.

    Processes that come here at the same time wait for the first one to finish.
    """
    from filelock import FileLock

    try:
        return read()
    except (FileNotFoundError, CorruptFileError):
        pass
    if not is_writable(path.parent):
        raise DataError(f"nothing may be written to {path.parent}; set LSPE_CACHE to a folder where that is possible")
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        try:
            return read()
        except (FileNotFoundError, CorruptFileError):
            pass
        for left_by_a_killed_process in path.parent.glob(f".{path.name}.*.tmp"):
            shutil.rmtree(left_by_a_killed_process, ignore_errors=True)
        try:
            build()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DataError(f"there is no room left for {path}; make some, or set LSPE_CACHE elsewhere") from error
            raise
        return read()
