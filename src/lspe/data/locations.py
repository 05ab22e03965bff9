"""Where data is looked for, where derived files are kept, and how two processes keep out of each other's way.

Sources (what was downloaded, or a file the user put there) live in the *data root*: the ``root`` argument,
else ``$LSPE_DATA``, else a folder in the user's cache. The data root may be read-only. Everything lspe
derives from sources (packed sets, encodings) lives in the *cache*: ``$LSPE_CACHE``, else the user's cache
folder.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lspe.data.errors import CorruptFileError, DataError
from lspe.data.packed.container import digest_of, digest_of_file

Result = TypeVar("Result")
_CONVERSION_VERSION = "1"

Root = str | os.PathLike[str] | None


def cache_root() -> Path:
    """``$LSPE_CACHE``, else the user's cache folder for lspe."""
    if given := os.environ.get("LSPE_CACHE"):
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("lspe"))


def data_root(root: Root = None) -> Path:
    """`root`, else ``$LSPE_DATA``, else ``data`` in the cache."""
    given = root or os.environ.get("LSPE_DATA")
    return Path(given).expanduser() if given else cache_root() / "data"


def is_writable(folder: Path) -> bool:
    """Whether files may be put into `folder`, or it may be made.

    An administrator's process could write anywhere; a folder without a write bit is meant to stay as it is.
    """
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)


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
