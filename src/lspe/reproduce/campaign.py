"""Train what tables need, job by job; any number of processes share the jobs, and each may be killed at any time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, Trainer

from lspe.data import DataError, GraphData
from lspe.errors import UserError
from lspe.experiment.data import load_data
from lspe.experiment.protocol import ProtocolKind
from lspe.experiment.value import CONFIG, Experiment
from lspe.files import make_folder
from lspe.locations import Root
from lspe.reproduce import figure
from lspe.reproduce.overview import look
from lspe.reproduce.plan import Job, Plan, make_plan
from lspe.reproduce.results import Result, collect_tables, file_name, write_tables
from lspe.reproduce.small_files import keep_small_files
from lspe.training.distributed import is_first
from lspe.training.fitting import Interrupted, fit
from lspe.training.lock import FolderInUse, is_held
from lspe.training.module import TrainingModule
from lspe.training.progress import Progress
from lspe.training.run import Run
from lspe.training.seeds_and_folds import begin_together, finish_together

SECONDS_BETWEEN_LOOKS = 2.0


def reproduce(
    names: str | Sequence[str],
    folder: Path,
    *,
    only: Sequence[str] = (),
    seeds: int | None = None,
    epochs: int | None = None,
    protocol: ProtocolKind | None = None,
    hours: float | None = None,
    results: Path | None = None,
    root: Root = None,
    progress: Progress | None = None,
    devices: int = 1,
    callbacks: Sequence[Callback] = (),
    **options: Any,
) -> dict[str, list[Result]]:
    """Train all of some tables that is not finished yet, and write the tables.

    Runs are in ``folder``/preset/seed… (and fold… below it), a table in ``folder``/name.csv, .md and .png, written anew
    after every run. Any number of processes may call this with the same arguments at the same time: each takes the
    first job that is neither done nor held by another. One that is killed loses the epoch in flight; its job is taken
    up where it stood by whoever looks for one next. Each call returns when all jobs are done.

    A data set that is not there leaves its rows empty, with the reason, and what cannot be trained leaves its row
    without that run; the others go on.

    Args:
        names: of tables (:data:`~lspe.reproduce.TABLES`) or presets.
        folder: where runs and tables go.
        only: names of rows, ``*`` for any letters; all rows if not given.
        seeds: how many of the preset's seeds; the paper's four if not given (csl and nci: one).
        epochs: at most so many.
        protocol: instead of the preset's own.
        hours: stop after the epoch in which so much time has passed.
        results: a folder to which the tables and the small files of the runs go as well.
        root: where data sets are.
        progress: where to show what happens; nowhere if not given.
        devices: processes that share each batch; such a group has the folder to itself.
        callbacks: of Lightning, for every training.
        options: further ones of :func:`lspe.training.fit`.

    Returns:
        The results of each table by its name.

    """
    names = [names] if isinstance(names, str) else names
    plan = make_plan(names, folder, only=only, seeds=seeds, epochs=epochs, protocol=protocol)
    progress = progress or Progress()
    watch = _Watch(plan.jobs, progress, hours)
    options |= {"devices": devices, "progress": progress, "callbacks": [*callbacks, watch]}
    work = _Work(plan, watch, root, results, options)
    work.go_through()
    found = work.write_tables()
    if is_first():
        for name, table in found.items():
            figure.plot(table, name, folder / file_name(name))
    return found


@dataclass
class _Work:
    """One process at work on a plan."""

    plan: Plan
    watch: _Watch
    root: Root
    results: Path | None
    options: dict[str, Any]
    problems: dict[Path, str] = field(default_factory=dict)
    settled: set[Path] = field(default_factory=set)
    _loaded: tuple[Any, GraphData] | None = None

    def go_through(self) -> None:
        """Train until every job is done or cannot be, or time is over."""
        is_told = False
        while self._has_time():
            if job := self._next():
                self._take(job)
            elif all(job.folder in self.settled for job in self.plan.jobs):
                break
            else:
                if not is_told:
                    self.watch.progress.say("other processes train what is left; waiting, in case one is killed")
                is_told = True
                time.sleep(SECONDS_BETWEEN_LOOKS)
        if is_first():
            self._finish_folds()

    @property
    def _shares_jobs(self) -> bool:
        """Processes that share each batch have to choose the same job, and cannot look for one that is free."""
        return bool(self.options["devices"] == 1)

    def _has_time(self) -> bool:
        """Processes that share each batch agree on the end within an epoch."""
        return not (self.watch.has_stopped or (self._shares_jobs and self.watch.is_over))

    def _next(self) -> Job | None:
        """The first job that nobody has done or is at."""
        for job in self.plan.jobs:
            if job.folder in self.settled:
                continue
            if job.folder in self.problems or job.is_done_as_asked:
                self.settled.add(job.folder)
            elif not (self._shares_jobs and is_held(job.folder)):
                return job
        return None

    def _take(self, job: Job) -> None:
        """Train it, unless another process was faster."""
        try:
            self._train(job)
        except FolderInUse:
            if not self._shares_jobs:
                raise
            return
        except Interrupted:
            if not self.watch.has_stopped:
                raise
            return
        except DataError as error:
            self.problems |= {one.folder: str(error) for one in self.plan.jobs if one.row == job.row}
        except UserError as error:
            self.problems[job.folder] = str(error)
        self.settled.add(job.folder)
        self.write_tables()

    def _train(self, job: Job) -> None:
        training = job.experiment.training
        if (training.members or 1) > 1 or training.forest:
            raise UserError(
                f"is several models that predict as one, and no row of the paper: lspe train {job.row.preset}"
            )
        data = self._data(job)
        if job.experiment.fold is not None and is_first() and not (job.folder.parent / CONFIG).is_file():
            make_folder(job.folder.parent)
            self._begin_folds(job.experiment, job)
        # a process that is killed loses no more than the epoch in flight
        fit(job.experiment, data, job.folder, resume=True, checkpoint_every=0.0, **self.options)

    def _data(self, job: Job) -> GraphData:
        """Kept for the next job, which is often another fold or seed of them."""
        model = job.experiment.model
        wanted = (job.experiment.dataset, model.encodings, model.beside)
        if self._loaded is None or self._loaded[0] != wanted:
            self._loaded = wanted, load_data(job.experiment, self.root)
        return self._loaded[1]

    def _begin_folds(self, experiment: Experiment, job: Job) -> None:
        together = experiment.model_copy(update={"fold": None})
        begin_together(together, job.folder.parent, len(self.plan.with_folds_of(job)))

    def _finish_folds(self) -> None:
        """Sum up folds that are all done."""
        for job in self.plan.jobs:
            runs = [one.run for one in self.plan.with_folds_of(job)]
            if job.experiment.fold == 0 and all(run.is_finished for run in runs):
                self._begin_folds(Run(job.folder).config, job)  # which may have gone on since they were begun
                finish_together(runs, job.folder.parent)

    def write_tables(self) -> dict[str, list[Result]]:
        """Of what there is now."""
        jobs = reversed(self.plan.jobs)
        problems = {job.row: self.problems[job.folder] for job in jobs if job.folder in self.problems}
        found = collect_tables(self.plan.tables, self.plan.folder, problems)
        if is_first():
            write_tables(found, self.plan.folder)
            if self.results is not None:
                keep_small_files(self.plan.tables, self.plan.folder, self.results)
                write_tables(found, self.results)
        return found


class _Watch(Callback):
    """Tells how all jobs stand, and ends the training after the epoch in which time is over."""

    def __init__(self, jobs: Sequence[Job], progress: Progress, hours: float | None) -> None:
        self.jobs = jobs
        self.progress = progress
        self.end = float("inf") if hours is None else time.monotonic() + 3600 * hours
        self.has_stopped = False
        self._told = -float("inf")

    @property
    def is_over(self) -> bool:
        """Whether time is over."""
        return time.monotonic() >= self.end

    def on_train_start(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        self._tell()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        self._tell()
        if trainer.strategy.broadcast(self.is_over) and not trainer.should_stop:
            self.has_stopped = True
            raise KeyboardInterrupt

    def _tell(self) -> None:
        if is_first() and time.monotonic() - self._told >= SECONDS_BETWEEN_LOOKS:
            overview = look(self.jobs)
            self.progress.status(overview.done, overview.jobs, overview.in_words())
            self._told = time.monotonic()
