"""What a campaign trains, and how far it has come: a job per row, seed and fold, each with a run folder of its own.

Nothing else is written down. A job is done when its folder has the summary of a finished run, running while a process
holds the folder's lock, begun when there are epochs in it, and otherwise left to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from lspe.data import available
from lspe.experiment.overriding import with_epochs, with_protocol
from lspe.experiment.protocol import ProtocolKind
from lspe.experiment.value import Experiment
from lspe.reproduce.tables import ONE_SEED, Row, choose_rows, rows_of_table
from lspe.training.lock import is_held
from lspe.training.run import HISTORY, Run

State = Literal["done", "running", "begun", "left"]


@dataclass(frozen=True)
class Job:
    """One training: a row with one seed, on one fold where its data set has folds."""

    row: Row
    experiment: Experiment
    folder: Path

    @cached_property
    def run(self) -> Run:
        """What there is in the folder, which may be nothing yet."""
        return Run(self.folder)

    @property
    def state(self) -> State:
        """As the folder tells."""
        if self.run.is_finished:
            return "done"
        if is_held(self.folder):
            return "running"
        return "begun" if (self.folder / HISTORY).is_file() else "left"

    @property
    def is_done_as_asked(self) -> bool:
        """Whether it was trained to its end under this very protocol; if not, training will see what can be done."""
        return self.run.is_finished and self.run.config.training.protocol == self.experiment.training.protocol


@dataclass(frozen=True)
class Plan:
    """Tables by name, the folder of their runs, and the jobs in the order in which they are begun."""

    tables: dict[str, tuple[Row, ...]]
    folder: Path
    jobs: tuple[Job, ...]

    def with_folds_of(self, job: Job) -> list[Job]:
        """The job and those that differ from it in the fold."""
        return [one for one in self.jobs if one.folder.parent == job.folder.parent]


def make_plan(
    names: Sequence[str],
    folder: Path,
    *,
    only: Sequence[str] = (),
    seeds: int | None = None,
    epochs: int | None = None,
    protocol: ProtocolKind | None = None,
) -> Plan:
    """All jobs of some tables or presets; see :func:`lspe.reproduce.reproduce` for the arguments.

    One seed of every row comes before the next seed, so that a table is complete early and becomes more certain later.
    """
    tables = choose_rows({name: rows_of_table(name) for name in names}, only)
    jobs: dict[Path, Job] = {}
    for name, rows in tables.items():
        experiments = {row: _experiment(row, epochs, protocol) for row in rows}
        count = seeds or (1 if name in ONE_SEED else None)
        order = [seed for one in experiments.values() for seed in one.training.seeds[:count]]
        for seed in dict.fromkeys(order):
            for row, experiment in experiments.items():
                if seed in experiment.training.seeds[:count]:
                    for job in _of_seed(row, experiment, seed, folder / row.name / f"seed{seed}"):
                        jobs.setdefault(job.folder, job)
    return Plan(tables, folder, tuple(jobs.values()))


def _experiment(row: Row, epochs: int | None, protocol: ProtocolKind | None) -> Experiment:
    experiment = row.experiment
    if protocol is not None:
        experiment = with_protocol(experiment, protocol)
    return experiment if epochs is None else with_epochs(experiment, epochs)


def _of_seed(row: Row, experiment: Experiment, seed: int, folder: Path) -> list[Job]:
    one = experiment.model_copy(update={"seed": seed})
    folds = available()[experiment.dataset].folds
    if not folds:
        return [Job(row, one, folder)]
    return [Job(row, one.model_copy(update={"fold": fold}), folder / f"fold{fold}") for fold in range(folds)]
