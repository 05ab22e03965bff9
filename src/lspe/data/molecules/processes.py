"""SMILES in other processes: many at a time to be quick, and large ones so that none can end this process.

What RDKit cannot stand (it may run out of stack, or not come to an end) costs a process that was started for it. The
SMILES is then a bad row like any other, with a reason.
"""

from __future__ import annotations

import faulthandler
import gc
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any, TypeVar

from lspe.data.errors import DataError, MoleculeError
from lspe.data.molecules.guard import WANT_OF_MEMORY, Guard, Harm, Work
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

    The processes are joblib's: unlike the standard library's they do not run the user's script again, so scripts need
    no ``if __name__ == "__main__"``.
    """
    careful = (_with_care(work, piece) for piece in pieces)
    if processes == 1:
        yield from map(work, careful)
        return
    pool = _start(processes)
    waiting: deque[tuple[Sequence[str], Any]] = deque()

    def first_result() -> Result:
        nonlocal pool
        piece, future = waiting.popleft()
        try:
            return future.result(timeout=_SECONDS_OF_A_PIECE)
        except (BrokenExecutor, TimeoutError) as error:
            _end(pool)
            if "SIGKILL" in str(error):  # from outside, which says nothing of the molecules
                raise DataError(WANT_OF_MEMORY) from error
            pool = _start(processes)
            for place, (other, lost) in enumerate(waiting):
                if not lost.done() or lost.exception() is not None:
                    waiting[place] = other, pool.submit(work, other)
            return _one_by_one(work, piece)

    try:
        for piece in careful:
            waiting.append((piece, pool.submit(work, piece)))
            if len(waiting) > 2 * processes:
                yield first_result()
        while waiting:
            yield first_result()
    finally:
        if waiting:
            _end(pool)
        else:
            pool.shutdown()


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
    """What `work` makes of a piece that may have ended a process, with what did so refused."""
    try:
        return _guard.result(work, piece, _SECONDS_OF_A_PIECE)
    except Harm:
        return _guard.result(work, _refusing(work, piece, range(len(piece))), _SECONDS_OF_A_PIECE)


_guard = Guard()


def _start(processes: int) -> Any:
    from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]

    return ProcessPoolExecutor(max_workers=processes, initializer=_start_worker)


def _start_worker() -> None:
    """Spare the garbage collector what imports leave behind, and the user what a process says when it comes to harm."""
    gc.freeze()
    faulthandler.disable()


def _end(pool: Any) -> None:
    """End the processes whatever they do."""
    pool.shutdown(wait=True, kill_workers=True)
