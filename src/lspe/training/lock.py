"""One training at a time in a run folder."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from lspe.training.distributed import is_first
from lspe.training.run import RunError

LOCK = ".training.lock"
HOLDER = ".training.json"
"""Who holds the lock; in a file of its own, for not every system lets others read a locked one."""


class FolderInUse(RunError):
    """A run folder that another process is training into."""


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Make ``folder`` if it is not there, and keep all other trainings out of it.

    The processes of one training are one holder: the first of them holds. The system lets go of the lock of a process
    that was killed. Nothing is left of the lock afterwards, nor of a folder into which nothing was written.
    """
    if not is_first():
        yield
        return
    is_new = not os.path.lexists(folder)
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(NotImplementedError):  # of a file system that knows no locks
            lock.acquire(timeout=0)
    except Timeout:
        raise FolderInUse(
            f"{folder}: another process{_holder(folder)} is training into this folder. Wait for it or stop it; "
            "or choose another --out"
        ) from None
    except OSError as error:
        reason = "it is a file" if os.path.isfile(folder) else error.strerror or error
        raise RunError(f"{folder} cannot be used as a run folder: {reason}; choose another --out") from None
    try:
        with suppress(OSError):
            (folder / HOLDER).write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        yield
    finally:
        for name in (HOLDER, LOCK):
            with suppress(OSError):  # some systems let nobody delete an open file
                (folder / name).unlink()
        lock.release()
        if is_new:
            with suppress(OSError):  # there is something in it
                folder.rmdir()


def is_held(folder: Path) -> bool:
    """Whether a process is training into ``folder``. Of one that was killed the holder's file may be left, no lock."""
    if not (folder / HOLDER).is_file() or not (folder / LOCK).is_file():
        return False
    try:
        with FileLock(folder / LOCK).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except (OSError, NotImplementedError):  # nobody can tell; whoever trains there will
        return False


def _holder(folder: Path) -> str:
    try:
        values = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return f" ({values['pid']} on {values['host']})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
