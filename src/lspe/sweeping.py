"""Train an experiment with several values of some of its settings, each with several seeds, and compare them."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lspe.config import ConfigError, read_yaml
from lspe.data.words import Level, TaskKind
from lspe.errors import UserError
from lspe.experiment import Experiment, read_experiment
from lspe.experiment.protocol import ProtocolKind
from lspe.experiment.task import goodness
from lspe.files import write_table, write_text
from lspe.for_people import CURVES
from lspe.html_report import REPORT
from lspe.locations import Root
from lspe.own_parts import path_of
from lspe.sources import DEFAULT, Source, adjusted, experiment_for
from lspe.training import Interrupted, Run
from lspe.training.progress import Progress, progress_for_stdout
from lspe.training.resuming import check_same
from lspe.training.run import SUMMARY
from lspe.training.words import Device
from lspe.workflow import carry_out, keep_graphs

BASE = "sweep.yaml"
TABLE = "sweep.csv"
_LONGEST_NAME = 80
_OF_A_TABLE = ("weight", "split", "split_column", "folds")

Values = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Sweep:
    """What a sweep has given so far: a row per setting, the best on the validation part first.

    A row has the values of the setting, ``runs``, mean and ``sd`` of the validation score over its seeds (and of the
    test score, if it was asked for), ``epochs``, ``seconds``, ``parameters``, ``folder``, and the ``problem`` of a
    setting that could not be trained.
    """

    path: Path
    metric: str
    rows: tuple[dict[str, Any], ...]

    @property
    def best(self) -> dict[str, Any]:
        """The setting with the best validation score."""
        if not self.rows or self.rows[0]["runs"] == 0:
            raise UserError(f"{self.path}: no setting has been trained to its end")
        return self.rows[0]


@dataclass(frozen=True)
class _Setting:
    values: dict[str, Any]
    experiment: Experiment
    folder: Path


def sweep(
    data: Source = DEFAULT,
    values: Values | None = None,
    *,
    out: str | os.PathLike[str],
    seeds: Sequence[int] = (),
    preset: str | None = None,
    targets: Sequence[str] | None = None,
    smiles: str | None = None,
    level: Level | None = None,
    task: TaskKind | None = None,
    protocol: ProtocolKind | None = None,
    epochs: int | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    test: bool = False,
    root: Root = None,
    workers: int | None = None,
    progress: bool = False,
    device: Device = "auto",
    threads: int | None = None,
) -> Sweep:
    """Train every combination of values with every seed, each in a folder of its own, and write one table.

    What was finished before is kept and what was interrupted goes on, so the same call made again ends what it began;
    with more values or seeds it adds to it. The validation score chooses; test scores are looked at only if asked for.

    >>> lspe.sweep("solubility.csv", {"model.dropout": [0, 0.1]}, seeds=[41, 42], out="sweeps/dropout").best

    Args:
        data: as :func:`lspe.train` takes it; what can be said of a table beyond ``targets`` and ``smiles`` comes with
            the run folder or config.yaml of a training on it.
        values: of each place in the experiment (``model.dropout``) those to try.
        out: the folder of the sweep; its table is sweep.csv.
        seeds: of weights and order; the experiment's own if not given.
        preset: as for :func:`lspe.train`, and so on to ``settings``.
        targets: columns of a table to learn.
        smiles: its column of SMILES.
        level: what the ``y`` of graphs belongs to.
        task: ``regression``, ``binary`` or ``multiclass``.
        protocol: ``paper`` or ``fast``.
        epochs: at most so many.
        settings: values that are the same for all.
        test: also put the test scores into the table.
        root: where benchmarks are.
        workers: processes that read molecules.
        progress: show on the standard output what happens.
        device: ``auto`` takes a GPU where there is one.
        threads: all cores if not given.

    """
    table = {"targets": None if targets is None else tuple(targets), "smiles": smiles, "task": task}
    base, graphs = experiment_for(data, preset, {**table, **dict.fromkeys(_OF_A_TABLE)}, level)
    base = adjusted(base, protocol=protocol, epochs=epochs, settings=settings)
    folder = Path(out)
    if graphs is not None:
        base = keep_graphs(base, graphs, folder)
    every = _settings(base, values or {}, folder)
    _begin(base, folder)
    shown = progress_for_stdout() if progress else Progress()
    problems: dict[Path, str] = {}
    options: dict[str, Any] = {"network": None, "nodes": 1, "threads": threads, "tensorboard": False}
    for setting, seed in itertools.product(every, tuple(seeds) or (base.seed,)):
        where = setting.folder / f"seed{seed}"
        if not _is_complete(where) and setting.folder not in problems:
            one = setting.experiment.model_copy(update={"seed": seed, "seeds": ()})
            machine: dict[str, Any] = {"device": device, "devices": 1, "workers": workers, "root": root}
            try:
                carry_out(one, where, None, start=None, resume=True, progress=shown, **machine, **options)
            except Interrupted:
                raise
            except UserError as error:
                problems[setting.folder] = str(error)
        _collect(every, folder, problems, test=test)
    return _collect(every, folder, problems, test=test)


def read_values(assignments: Sequence[str]) -> tuple[dict[str, list[Any]], list[str]]:
    """``place=value,value,…`` of the command line: those to try, and those of which there is only one as they are."""
    several: dict[str, list[Any]] = {}
    single: list[str] = []
    for assignment in assignments:
        place, equals, text = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set {assignment}: write place=value,value, for instance --set model.dropout=0,0.1")
        values = read_yaml(f"[{text}]", f"--set {assignment}")
        if len(values) > 1:
            several[place.strip()] = values
        else:
            single.append(assignment)
    return several, single


def _settings(base: Experiment, values: Values, folder: Path) -> list[_Setting]:
    """All combinations, each valid, with a folder of its own."""
    if not values:
        raise UserError("there is nothing to compare: give several values, --set model.dropout=0,0.1")
    places = list(values)
    short = {place: place.rpartition(".")[2] for place in places}
    if len({*short.values()}) < len(places):
        short = {place: place for place in places}
    made = []
    for combination in itertools.product(*values.values()):
        chosen = dict(zip(places, combination, strict=True))
        name = ",".join(f"{short[place]}={_text(value)}" for place, value in chosen.items())
        made.append(_Setting(chosen, adjusted(base, settings=chosen), folder / _file_name(name)))
    if len({one.folder for one in made}) < len(made):
        raise UserError(f"a value is given twice among {', '.join(one.folder.name for one in made)}")
    return made


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=path_of)


def _file_name(text: str) -> str:
    """Of a folder; where a letter had to go or it is too long, a digest keeps it apart from others."""
    name = re.sub(r"[^\w.=,+-]+", "-", text)[:_LONGEST_NAME]
    return name if name == text else f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _begin(base: Experiment, folder: Path) -> None:
    """Write down what the settings are changes of; a folder with another sweep is refused."""
    path = folder / BASE
    if path.is_file():
        check_same(read_experiment(str(path)), base, folder)
    elif folder.is_dir() and any(folder.glob("config.yaml")):
        raise UserError(f"{folder} holds a run, not a sweep: choose another folder")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, base.to_yaml(folder))


def _is_complete(folder: Path) -> bool:
    """Whether what is written last of a run is there."""
    if not (folder / SUMMARY).is_file():
        return False
    return (folder / (CURVES if Run(folder).config.table is None else REPORT)).is_file()


def _collect(every: Sequence[_Setting], folder: Path, problems: Mapping[Path, str], *, test: bool) -> Sweep:
    """The table of all complete runs, which is also written."""
    summaries = {
        one.folder: [Run.open(path).summary for path in sorted(one.folder.glob("seed*")) if _is_complete(path)]
        for one in every
    }
    metric = next((one["metric"] for several in summaries.values() for one in several), every[0].experiment.task.metric)
    rows = [_row(one, summaries[one.folder], metric, problems.get(one.folder, ""), test=test) for one in every]
    rows.sort(key=lambda row: _rank(metric, row[f"val_{metric}"]))
    write_table(folder / TABLE, rows)
    return Sweep(folder, metric, tuple(rows))


def _rank(metric: str, score: float | None) -> float:
    return float("inf") if score is None else -goodness(metric, score)


def _row(
    setting: _Setting, summaries: Sequence[dict[str, Any]], metric: str, problem: str, *, test: bool
) -> dict[str, Any]:
    row: dict[str, Any] = {place: _text(value) for place, value in setting.values.items()}
    row["runs"] = len(summaries)
    for split in ("val", "test") if test else ("val",):
        scores = [score_of(summary, split) for summary in summaries]
        known = [score for score in scores if score is not None]
        whole = bool(known) and len(known) == len(scores)
        row[f"{split}_{metric}"] = float(np.mean(known)) if whole else None
        row[f"{split}_sd"] = float(np.std(known)) if whole else None
    for name in ("epochs", "total_seconds"):
        row[name] = float(np.mean([_mean(one[name]) for one in summaries])) if summaries else None
    row["parameters"] = summaries[0]["parameters"] if summaries else None
    return {**row, "folder": str(setting.folder), "problem": problem}


def score_of(summary: Mapping[str, Any], split: str) -> float | None:
    """The score that counts: of all that predicts as one, else the mean over folds or networks."""
    if "together" in summary:
        score = summary["together"][split]["together"][summary["metric"]]
    else:
        score = summary["reported"].get(split, {}).get(summary["metric"])
    return None if score is None else _mean(score)


def _mean(value: Any) -> float:
    return float(value["mean"] if isinstance(value, Mapping) else value)
