"""SMILES in other processes: many at a time to be quick, and large ones so that none can end this process.

What RDKit cannot stand (it may run out of stack, or not come to an end) costs a process that was started for it. The
SMILES is then a bad row like any other, with a reason.
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

from lspe.data.errors import MoleculeError
from lspe.data.molecules.guard import Guard, Harm, Work
from lspe.data.molecules.limits import check_size, is_large

Result = TypeVar("Result")

SECONDS = 10.0
"""How long a single molecule may take where it is read with care."""

_SECONDS_OF_A_PIECE = 120.0
_WORTH_PROCESSES = 4_000


class Refused(str):
    """A SMILES that must not be given to RDKit, and the `reason`."""

    reason: str

    def __new__(cls, smiles: str, reason: str) -> Refused:
        """The SMILES as text with a reason."""
        refused = super().__new__(cls, smiles)
        refused.reason = reason
        return refused

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str]]:
        return Refused, (str(self), self.reason)


def map_in_processes(work: Work[Result], pieces: Iterable[Sequence[str]], *, processes: int) -> Iterator[Result]:
    """``work(piece)`` for each list of SMILES, in order, at most a few pieces ahead of whoever takes the results.

    With one process everything happens here, but for large SMILES: those are first tried in a process of their own.
    Where they, or whatever else, end a process or take too long, `work` finds them as :class:`Refused`.
    """
    careful = (_with_care(work, piece) for piece in pieces)
    if processes == 1:
        yield from map(work, careful)
        return
    guards = [Guard() for _ in range(processes)]
    idle: SimpleQueue[Guard] = SimpleQueue()
    for guard in guards:
        idle.put(guard)

    def read(piece: Sequence[str]) -> Result:
        guard = idle.get()
        try:
            return guard.result(work, piece, _SECONDS_OF_A_PIECE)
        finally:
            idle.put(guard)

    waiting: deque[tuple[Sequence[str], Future[Result]]] = deque()

    def first_result() -> Result:
        piece, future = waiting.popleft()
        try:
            return future.result()
        except Harm:
            return _one_by_one(work, piece)

    readers = ThreadPoolExecutor(processes)
    try:
        for piece in careful:
            waiting.append((piece, readers.submit(read, piece)))
            if len(waiting) > 2 * processes:
                yield first_result()
        while waiting:
            yield first_result()
    finally:
        readers.shutdown(wait=False, cancel_futures=True)
        for guard in guards:
            guard.interrupt()
        readers.shutdown()
        for guard in guards:
            guard.end()


def processes_for(molecules: int) -> int:
    """As many processes as this one may use cores, where there are enough molecules to be worth starting them."""
    if molecules < _WORTH_PROCESSES:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def why_not(work: Work[Any], smiles: str) -> str | None:
    """Why a SMILES must not be worked on in this process; ``None`` where another process came to no harm by it."""
    try:
        check_size(smiles)
    except MoleculeError as error:
        return error.reason
    return harm_of(work, smiles)


def harm_of(work: Work[Any], text: str) -> str | None:
    """What harm came to another process by working on a text, if any."""
    try:
        _guard.result(work, [text], SECONDS)
    except Harm as error:
        return error.reason
    return None


def _with_care(work: Work[Any], piece: Sequence[str]) -> Sequence[str]:
    """The piece with the large SMILES tried, and refused if need be."""
    large = [row for row, smiles in enumerate(piece) if is_large(smiles)]
    return _refusing(work, piece, large) if large else piece


def _refusing(work: Work[Any], piece: Sequence[str], rows: Iterable[int]) -> Sequence[str]:
    tried = list(piece)
    for row in rows:
        if reason := why_not(work, tried[row]):
            tried[row] = Refused(tried[row], reason)
    return tried


def _one_by_one(work: Work[Result], piece: Sequence[str]) -> Result:
    """What `work` makes of a piece that came to harm, with what did so refused."""
    return _guard.result(work, _refusing(work, piece, range(len(piece))), _SECONDS_OF_A_PIECE)


_guard = Guard()
atexit.register(_guard.end)
