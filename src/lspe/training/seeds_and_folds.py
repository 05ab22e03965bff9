"""One command, one or several trainings: a seed and a fold each, and the mean and spread over them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from lspe.data import GraphData
from lspe.data.words import TaskKind
from lspe.errors import UserError
from lspe.experiment.data import load_data
from lspe.experiment.value import CONFIG, Experiment
from lspe.files import write_json, write_text
from lspe.locations import Root
from lspe.training.distributed import is_first
from lspe.training.fitting import Interrupted, fit, seen_by_member
from lspe.training.lock import hold
from lspe.training.run import REPEATS, SUMMARY, Run, RunError, check_free, go_on_with, open_runs
from lspe.training.summary import SPLITS
from lspe.training.words import Which


def parts_of(experiment: Experiment, data: GraphData) -> dict[str, Experiment]:
    """The single trainings of an experiment by name; one without name if it is only one."""
    seeds = experiment.seeds or (experiment.seed,)
    members = experiment.training.members or 1
    if members > 1 and experiment.member is None:
        if len(seeds) > 1 or (data.folds and experiment.fold is None):
            raise UserError("several members are for one seed and one division: leave out --seed and --folds")
        return {f"network{number}": _member(experiment, data.task, number) for number in range(members)}
    folds: Sequence[int | None] = [experiment.fold]
    if data.folds and experiment.fold is None:
        folds = range(len(data.folds))
    if len(seeds) == len(folds) == 1:
        return {"": experiment.model_copy(update={"seed": seeds[0], "fold": folds[0], "seeds": ()})}
    parts = {}
    for seed in seeds:
        for fold in folds:
            name = "-".join([f"seed{seed}"] * (len(seeds) > 1) + [f"fold{fold}"] * (len(folds) > 1))
            parts[name] = experiment.model_copy(update={"seed": seed, "fold": fold, "seeds": ()})
    return parts


def _member(experiment: Experiment, task: TaskKind, number: int) -> Experiment:
    """One network of an ensemble, with descriptors where these are left to its number."""
    model, seed = experiment.model, (experiment.seeds or (experiment.seed,))[0]
    if model.descriptors is None:
        without = task != "regression" and number % 2
        model = model.model_copy(update={"descriptors": "none" if without else model.beside})
    return experiment.model_copy(update={"model": model, "seed": seed + number, "member": number, "seeds": ()})


def train(experiment: Experiment, data: GraphData, folder: Path, *, resume: bool = False, **options: Any) -> Run:
    """Train every part of ``experiment`` into ``folder``; ``options`` are those of :func:`lspe.training.fit`.

    A single training is a run folder. Of several, each has a folder of its own below, and ``folder`` has a
    summary.json with mean and standard deviation over them. With ``resume`` finished parts are kept and the
    others go on. Each of several takes a copy of the callbacks.
    """
    parts = parts_of(experiment, data)
    callbacks = options.pop("callbacks", ())
    if list(parts) == [""]:
        return fit(parts[""], data, folder, resume=resume, callbacks=callbacks, **options)
    if options.get("loggers"):
        raise UserError(f"a logger is for one training, and these are {len(parts)}: train them one by one")
    with hold(folder):
        if is_first():
            if not resume:
                check_free(folder)
            begin_together(experiment, folder, len(parts))
        try:
            runs = [
                fit(part, data, folder / name, resume=resume, callbacks=deepcopy(callbacks), **options)
                for name, part in parts.items()
            ]
        except Interrupted:
            raise Interrupted(folder) from None
        if is_first():
            finish_together(runs, folder)
    return Run(folder, options.get("network"))


def begin_together(experiment: Experiment, folder: Path, parts: int) -> None:
    """Say in ``folder`` what the runs below it are parts of."""
    text = f"{REPEATS} these {parts} runs\n{experiment.to_yaml(folder)}"
    write_text(folder / CONFIG, text, then=go_on_with(folder))


def finish_together(runs: Sequence[Run], folder: Path) -> None:
    """Write the summary.json of several runs that are all finished."""
    write_json(folder / SUMMARY, summarize(runs), then=go_on_with(folder))


def summarize(runs: Sequence[Run]) -> dict[str, Any]:
    """Mean and standard deviation (ddof 0) over several runs of one experiment."""
    if not runs:
        raise UserError("there is no run to summarise")
    all_of_them = [run.summary for run in runs]
    first = all_of_them[0]
    same = ("preset", "dataset", "task", "metric", "protocol", "report", "parameters", "versions", "hardware")
    return {
        **{key: first[key] for key in same},
        "parts": [run.path.name for run in runs],
        **{
            which: {
                split: _spread([one[which][split] for one in all_of_them]) for split in SPLITS if split in first[which]
            }
            for which in ("reported", "last", "best", "constant")
        },
        **_spread([{key: one[key] for key in ("epochs", "seconds_per_epoch", "total_seconds")} for one in all_of_them]),
    }


def _spread(values: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each key the mean and standard deviation; ``None`` where a value is not defined in some run."""
    result = {}
    for key in values[0]:
        column = [one[key] for one in values]
        known = None not in column
        result[key] = {"mean": float(np.mean(column)), "sd": float(np.std(column))} if known else None
    return result


def _check_same_task(run: Run, data: GraphData) -> None:
    """A table may have been changed since a run was trained on it."""
    task = run.config.task
    if (data.level, data.task, data.num_outputs) != (task.level, task.kind, task.outputs):
        raise RunError(
            f"{run.path} was trained on a {task.kind} task of {task.level}s with {task.outputs} outputs, but "
            f"{data.name} is now a {data.task} task of {data.level}s with {data.num_outputs}: put back the data it was "
            "trained on"
        )


def evaluate_runs(path: str | Path, split: str, which: Which = "reported", *, root: Root = None) -> dict[str, Any]:
    """Loss and scores of every single run of a folder on ``split``, by name; of several also mean and deviation."""
    results: dict[str, Any] = {}
    for run in open_runs(path):
        data = load_data(run.config, root)
        if run.config.fold is not None:
            data = data.fold(run.config.fold)
        data = seen_by_member(run.config, data)
        _check_same_task(run, data)
        results[run.path.name] = run.evaluate(data.split(split), which).to_dict()
    if len(results) > 1:
        results["all"] = _spread(list(results.values()))
    return results
