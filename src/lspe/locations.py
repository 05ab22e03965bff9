"""Where data are looked for, and where derived files are kept.

Sources (what was downloaded, or a file the user put there) live in the *data root*: the ``root`` argument,
else ``$LSPE_DATA``, else a folder in the user's cache. The data root may be read-only. Everything lspe
derives (packed sets, encodings, compiled operators) lives in the *cache*: ``$LSPE_CACHE``, else the user's cache
folder.
"""

from __future__ import annotations

import os
from pathlib import Path

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
