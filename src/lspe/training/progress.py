"""What a person sees while a network trains: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from lspe.experiment.task import format_score
from lspe.training.module import EpochResult

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_STATUS = 300.0


class Progress:
    """Shows nothing; the others show more."""

    def begin(self, title: str, metric: str, epoch: int, epochs: int, steps: int) -> None:
        """Training of ``epochs`` epochs of ``steps`` steps begins, or goes on, after ``epoch`` of them."""

    def step(self) -> None:
        """A step is done."""

    def epoch(self, result: EpochResult) -> None:
        """An epoch is done."""

    def note(self, text: str) -> None:
        """Something worth knowing."""

    def status(self, done: int, trainings: int, text: str) -> None:
        """How far all the trainings have come of which this is one; told again and again."""

    def say(self, text: str) -> None:
        """Something worth knowing before the first training begins, or after the last."""

    def end(self) -> None:
        """Training is over, or was interrupted."""


class Lines(Progress):
    """One line for the first and the last epoch and for one every few seconds between them."""

    def __init__(self, every: float = SECONDS_BETWEEN_LINES, status_every: float = SECONDS_BETWEEN_STATUS) -> None:
        self.every = every
        self.status_every = status_every

    def begin(self, title: str, metric: str, epoch: int, epochs: int, steps: int) -> None:
        self.metric, self.epochs = metric, epochs
        self._last = self._status_at = -float("inf")
        self._waiting: str | None = None
        self.note(title)

    def epoch(self, result: EpochResult) -> None:
        left = clock(result.seconds * (self.epochs - result.epoch))
        self._waiting = f"epoch {result.epoch}/{self.epochs}  {describe_epoch(result, self.metric)}  {left} left"
        if time.monotonic() - self._last >= self.every:
            self._print_waiting()

    def note(self, text: str) -> None:
        print(text, flush=True)

    def status(self, done: int, trainings: int, text: str) -> None:
        if time.monotonic() - self._status_at >= self.status_every:
            self.note(text)
            self._status_at = time.monotonic()

    def say(self, text: str) -> None:
        self.note(text)

    def end(self) -> None:
        self._print_waiting()

    def _print_waiting(self) -> None:
        if self._waiting is not None:
            print(self._waiting, flush=True)
            self._waiting, self._last = None, time.monotonic()


class Bar(Progress):
    """A live bar: epochs, steps of the epoch, loss, learning rate, validation score, graphs a second, time left."""

    def __init__(self) -> None:
        self._live: Any = None

    def begin(self, title: str, metric: str, epoch: int, epochs: int, steps: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Live
        from rich.table import Column

        self.metric, self.epochs, self.steps = metric, epochs, steps
        columns: list[Any] = [
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}", table_column=Column()),  # which may wrap
        ]
        self._live = Live(*columns, refresh_per_second=2)
        self._live.start()
        self.note(title)
        self._epochs = self._live.add_task("epochs", total=epochs, completed=epoch, text="")
        self._steps = self._live.add_task("steps", total=steps, text="")
        self._trainings = None

    def step(self) -> None:
        self._live.advance(self._steps)

    def epoch(self, result: EpochResult) -> None:
        left = clock(result.seconds * (self.epochs - result.epoch))
        text = f"{describe_epoch(result, self.metric)}  {left} left"
        self._live.update(self._epochs, completed=result.epoch, text=text)
        self._live.reset(self._steps, total=self.steps)

    def note(self, text: str) -> None:
        if self._live is None:  # before training begins
            print(text, flush=True)
        else:
            self._live.console.print(text, highlight=False)

    def status(self, done: int, trainings: int, text: str) -> None:
        if self._trainings is None:
            self._trainings = self._live.add_task("trainings", text="")
        self._live.update(self._trainings, completed=done, total=trainings, text=text)

    def say(self, text: str) -> None:
        print(text, flush=True)

    def end(self) -> None:
        self._live.stop()


def progress_for_stdout() -> Progress:
    """A bar on a terminal, lines into a file or a pipe."""
    return Bar() if sys.stdout.isatty() else Lines()


def describe_epoch(result: EpochResult, metric: str) -> str:
    """An epoch in one line."""
    score = format_score(metric, result.val.scores[metric])
    return (
        f"loss {result.train.loss:.4f}  val {metric} {score}  lr {result.lr:.1e}  "
        f"{result.per_second:,.0f} {result.unit}/s  {result.seconds:.1f} s"
    )


def clock(seconds: float) -> str:
    """A span of time as a person says it."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
