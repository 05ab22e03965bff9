"""How far a campaign has come, and when it may end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from lspe.reproduce.plan import Job
from lspe.reproduce.results import epochs_so_far
from lspe.reproduce.tables import Row
from lspe.training.progress import clock


@dataclass(frozen=True)
class Overview:
    """How many jobs are done, running and left; the seconds that are left, if any epoch was measured."""

    done: int
    running: int
    left: int
    seconds: float | None
    at_most: bool = False

    @property
    def jobs(self) -> int:
        """All of them."""
        return self.done + self.running + self.left

    def in_words(self, now: datetime | None = None) -> str:
        """``3 of 15 done, 2 running, 10 left: 4.2 h, until Tue 03:40``."""
        text = f"{self.done} of {self.jobs} done, {self.running} running, {self.left} left"
        if self.seconds is None or self.done == self.jobs:
            return text
        end = (now or datetime.now()) + timedelta(seconds=self.seconds)
        return f"{text}: {'at most ' * self.at_most}{clock(self.seconds)}, until {end:%a %H:%M}"


def of_begun_seeds(jobs: Sequence[Job]) -> Sequence[Job]:
    """Those with a seed that some row has been trained with; all where nothing has begun."""
    begun = {job.experiment.seed for job in jobs if job.state != "left"}
    return [job for job in jobs if job.experiment.seed in begun] or jobs


def look(jobs: Sequence[Job]) -> Overview:
    """Read from the run folders how it stands.

    An epoch takes as long as the median one of its row did, for a process may have been stopped for hours; of a row
    that nobody has begun, as the mean of the others. As many jobs as are running now share what is left. Under a
    protocol that may end before its last epoch that is the most it can take.
    """
    states = {job.folder: job.state for job in jobs}
    histories = {job.folder: [row["seconds"] or 0.0 for row in epochs_so_far(job.run)] for job in jobs}
    of_row: dict[Row, list[float]] = {}
    for job in jobs:
        of_row.setdefault(job.row, []).extend(histories[job.folder])
    usual_of_row = {row: float(np.median(seconds)) for row, seconds in of_row.items() if seconds}
    not_done = [job for job in jobs if states[job.folder] != "done"]
    count = list(states.values()).count
    seconds = None
    if usual_of_row:
        usual = float(np.mean(list(usual_of_row.values())))
        total = sum(
            max(job.experiment.training.protocol.max_epochs - len(histories[job.folder]), 0)
            * usual_of_row.get(job.row, usual)
            for job in not_done
        )
        seconds = total / max(count("running"), 1)
    at_most = any(not job.experiment.training.protocol.goes_by_steps for job in not_done)
    return Overview(count("done"), count("running"), count("begun") + count("left"), seconds, at_most)
