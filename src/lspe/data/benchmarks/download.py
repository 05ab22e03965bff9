"""Getting a benchmark's files: from the data root where they are there, else from the official source.

A download comes over https, redirections too. It is compared with the SHA-256 that was published for it; where nobody
published one, with the one of the first download, which is kept beside the file (``molecules.zip.sha256``). A zip
archive's own checksums are read through as well. A file somebody put into the data root is taken as it is.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lspe.data.errors import DataError
from lspe.data.progress import progress_bar
from lspe.files import complete_or_nothing
from lspe.locations import Root, cache_root, data_root, is_writable

_TRUSTED = ("https://",)
_HEADERS = {"User-Agent": "lspe", "Accept-Encoding": "identity"}
_TIMEOUT = 60
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Source:
    """A file a benchmark can be read from, the place it is officially published at, and its SHA-256.

    The digest is ``None`` where nobody has published one.
    """

    file: str
    url: str
    sha256: str | None


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
    try:
        _download(source, target)
    except _Failed as error:
        raise DataError(
            f"{target.name} could not be downloaded ({error}). Download {source.url} on a machine with "
            f"a connection and put it there: {target}"
        ) from error
    return target


class _Failed(Exception):
    """A download that did not give the file, and why."""


def _download(source: Source, target: Path) -> None:
    """Put what `source` gives under the name `target`, all of it and checked, or nothing."""
    import pooch
    import requests

    record = target.with_name(f"{target.name}.sha256")
    first = record.read_text().partition(" ")[0] if source.sha256 is None and record.exists() else None
    try:
        with _without_a_word():
            pooch.retrieve(source.url, source.sha256 or first, target.name, target.parent, downloader=_fetch)
    except requests.RequestException as error:
        raise _Failed(_cause(error)) from error
    except ValueError as error:  # pooch's word for another digest
        if first:
            raise _Failed(
                f"it is not what came the first time, whose SHA-256 is in {record}; if it was renewed at its source, "
                f"delete that file and try again: {error}"
            ) from error
        raise _Failed(f"it is not the published file: {error}") from error
    if source.sha256 is None:
        with complete_or_nothing(record) as unfinished:
            unfinished.write_text(f"{pooch.file_hash(target)}  {target.name}\n")


def _fetch(url: str, output: str, _: object) -> None:
    """Copy what `url` gives to the file `output`, with a progress bar; a zip archive must be whole.

    In place of pooch's own way, which follows redirections to http and leaves its connection open after an error.
    """
    import requests

    name = url.partition("?")[0].rpartition("/")[2]
    received = 0
    with requests.get(url, headers=_HEADERS, stream=True, timeout=_TIMEOUT) as answer, open(output, "wb") as out:
        for visited in (*answer.history, answer):
            if not visited.url.startswith(_TRUSTED):  # anybody on the way could have written this answer
                raise _Failed(f"{visited.url} is no https address")
        answer.raise_for_status()
        compressed = "Content-Encoding" in answer.headers
        promised = 0 if compressed else int(answer.headers.get("Content-Length") or 0)
        with progress_bar(name, promised or None, bytes_=True) as advance:
            for block in answer.iter_content(_BLOCK):
                received += out.write(block)
                advance(len(block))
    if promised and received != promised:
        raise _Failed(f"only {received:,} of {promised:,} bytes came")
    if name.endswith(".zip") and (damaged := _damage(output)):
        raise _Failed(f"what {url} gave is damaged or no zip archive: {damaged}")


def _damage(archive: str) -> str | None:
    """The first member that does not fit its checksum; a page that says "moved" is no archive at all."""
    if not zipfile.is_zipfile(archive):
        return "the archive"
    try:
        with zipfile.ZipFile(archive) as files:
            return files.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return str(error)


def _cause(error: BaseException) -> str:
    """What went wrong in the first place, without the layers of libraries around it."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"{response.status_code} {response.reason}"
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error)


@contextmanager
def _without_a_word() -> Iterator[None]:
    """Pooch tells of every download and prints its digest; here the progress bar and the errors say what there is."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        logger.setLevel(level)
