"""Getting a benchmark's files: from the data root where they are there, else from the official source."""

from __future__ import annotations

import os
import tempfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

from lspe.data.errors import DataError
from lspe.data.progress import progress_bar
from lspe.locations import Root, cache_root, data_root, is_writable

_TIMEOUT = 60
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Source:
    """A file a benchmark can be read from, and the place it is officially published at."""

    file: str
    url: str


def find(file: str, root: Root = None) -> Path | None:
    """`file` (or folder) in the data root, or among what was downloaded before."""
    for folder in (data_root(root), cache_root() / "data"):
        if (folder / file).exists():
            return folder / file
    return None


def obtain(source: Source, root: Root = None) -> Path:
    """Where the file of `source` is; it is downloaded first where it is nowhere yet. Never asks anything."""
    if (here := find(source.file, root)) is not None:
        return here
    folder = data_root(root)
    if not is_writable(folder):
        folder = cache_root() / "data"
    target = folder / source.file
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            _download(source.url, out.fileno(), target.name)
            os.fsync(out.fileno())
        if target.suffix == ".zip":
            _check_zip(Path(temporary), source.url)
        os.replace(temporary, target)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(error, urllib.error.HTTPError):
            reason = f"{error.code} {reason}"
            error.close()
        raise DataError(
            f"{target.name} could not be downloaded ({reason}). Download {source.url} on a machine with "
            f"a connection and put it there: {target}"
        ) from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    return target


def _download(url: str, out: int, name: str) -> None:
    """Copy what `url` gives to the file `out`, with a progress bar, and check that all of it came."""
    request = urllib.request.Request(url, headers={"User-Agent": "lspe"})
    received = 0
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        promised = int(answer.headers.get("Content-Length") or 0)
        with progress_bar(name, promised or None, bytes_=True) as advance:
            while block := answer.read(_BLOCK):
                os.write(out, block)
                received += len(block)
                advance(len(block))
    if promised and received != promised:
        raise ConnectionError(f"only {received:,} of {promised:,} bytes came")


def _check_zip(path: Path, url: str) -> None:
    """Every member of the archive against its checksum; a page that says "moved" is no archive."""
    damaged: str | None = "the archive"
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    if damaged:
        raise ConnectionError(f"what {url} gave is damaged or no zip archive: {damaged}")
