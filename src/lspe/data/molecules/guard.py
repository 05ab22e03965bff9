"""A process beside this one that may come to harm: it reads what could end the process, or not come to an end."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from threading import Lock, Timer
from typing import Any, TypeVar

from lspe.data.errors import DataError

Result = TypeVar("Result")
Work = Callable[[Sequence[str]], Result]

WANT_OF_MEMORY = (
    "a process that reads molecules was ended by the system, most likely for want of memory: use fewer of them "
    "(--workers 1 on the command line)"
)
_KILLED = -9


class Harm(Exception):
    """What came to a process by its work, with the `reason` as it follows the SMILES in a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Guard:
    """A process that is started when it is needed, and again when it came to harm. Threads take turns.

    Unlike one of the standard library's it does not run the user's script again, so scripts need no
    ``if __name__ == "__main__"``.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._known: Work[Any] | None = None
        self._one_at_a_time = Lock()

    def result(self, work: Work[Result], texts: Sequence[str], seconds: float) -> Result:
        """``work(texts)``, or :class:`Harm`."""
        with self._one_at_a_time:
            if self._known is not work or not self._is_there():
                self._ask(work, [], None)  # what the work imports takes a while, and is no molecule's fault
                self._known = work
            return self._ask(work, texts, seconds)

    def interrupt(self) -> None:
        """End the process whatever it does; whoever waits for its result learns of it."""
        if self._is_there():
            self._process.kill()  # type: ignore[union-attr]

    def _ask(self, work: Work[Result], texts: Sequence[str], seconds: float | None) -> Result:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        late = Timer(seconds or 0, process.kill)
        try:
            pickle.dump((work, texts), process.stdin)
            process.stdin.flush()
            if seconds is not None:
                late.start()
            result, error = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            took_too_long = late.finished.is_set()
            code = self.end()
            if took_too_long:
                raise Harm(f"takes longer than {seconds:.0f} s to read") from None
            if code == _KILLED:
                raise DataError(WANT_OF_MEMORY) from None
            raise Harm("is more than RDKit can stand: it ended the process that read it") from None
        finally:
            late.cancel()
        if error is not None:
            raise error
        return result

    def _is_there(self) -> bool:
        return self._process is not None and self._owner == os.getpid()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or not self._is_there():
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            self._owner = os.getpid()
        return self._process

    def end(self) -> int:
        """End the process, for whose result nobody waits, and give its code."""
        process, there = self._process, self._is_there()
        self._process = None
        if process is None or not there:
            return 0
        for pipe in (process.stdin, process.stdout):
            try:
                pipe.close()  # type: ignore[union-attr]
            except OSError:
                continue
        process.kill()
        return process.wait()


def _serve() -> None:
    """Answer work with its result or its error, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is interrupted, too, and ends this process
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the work prints is no answer
    while True:
        try:
            work, texts = pickle.load(questions)
        except EOFError:
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = work(texts), None
        except Exception as error:
            answer = None, error
        pickle.dump(answer, answers)
        answers.flush()
        if not texts:
            gc.freeze()  # what imports leave behind, the garbage collector need not look through again


if __name__ == "__main__":
    _serve()
