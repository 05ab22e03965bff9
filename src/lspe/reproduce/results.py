"""Ours beside the paper's: as values, as a table of text, as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lspe.errors import UserError
from lspe.experiment import PaperRow, count_parameters, load_preset
from lspe.experiment.task import format_score
from lspe.experiment.value import CONFIG
from lspe.files import make_folder, write_table, write_text
from lspe.reproduce.tables import BASELINES, Row
from lspe.training.run import Run, open_runs
from lspe.training.seeds_and_folds import summarize
from lspe.training.summary import CONSTANT, SPLITS


@dataclass(frozen=True)
class Result:
    """One row: what we got, what the paper got, and the difference. ``None`` is what there is not (yet).

    Scores are means and spreads over the ``runs`` that are finished. Where none is, they are those of the last epoch of
    the ``begun`` ones, and the test score is not known. ``epochs_of_begun`` says how far the furthest of these is, and
    out of how many.
    """

    name: str
    preset: str
    dataset: str
    k: int
    metric: str
    protocol: str
    parameters: int
    runs: int = 0
    begun: int = 0
    epochs_of_begun: str = ""
    seeds: str = ""
    test: float | None = None
    test_sd: float | None = None
    val: float | None = None
    val_sd: float | None = None
    train: float | None = None
    train_sd: float | None = None
    constant: float | None = None
    epochs: float | None = None
    seconds_per_epoch: float | None = None
    paper_test: float | None = None
    paper_test_sd: float | None = None
    paper_train: float | None = None
    paper_train_sd: float | None = None
    paper_epochs: float | None = None
    paper_seconds_per_epoch: float | None = None
    paper_parameters: int | None = None
    difference: float | None = None
    problem: str = ""


def collect(row: Row, folder: Path, problem: str = "") -> Result:
    """The result of the runs below ``folder``: config.yaml, metrics.csv and summary.json of each are enough."""
    values = _of_row(row) | {"problem": problem}
    of_seeds = [Run(path.parent) for path in sorted(folder.glob(f"seed*/{CONFIG}"))]
    parts = [run for one in of_seeds for run in open_runs(one.path)]
    finished = [run for run in parts if run.is_finished]
    histories = {run: epochs_so_far(run) for run in parts if not run.is_finished}
    begun = {run: history for run, history in histories.items() if history}
    if begun:
        values |= _of_begun(begun)
    if finished:
        values |= _of_finished(finished) | _of_those_that_predict_as_one(of_seeds)
    values["seeds"] = " ".join(str(seed) for seed in dict.fromkeys(run.config.seed for run in finished or begun))
    if values.get("test") is not None and values.get("paper_test") is not None:
        values["difference"] = values["test"] - values["paper_test"]
    return Result(**values)


def epochs_so_far(run: Run) -> list[dict[str, float | None]]:
    """The rows of metrics.csv; none where it is not there, another process is just at it, or it is damaged."""
    try:
        return run.history
    except UserError:
        return []


def collect_tables(
    tables: Mapping[str, Sequence[Row]], folder: Path, problems: Mapping[Row, str] | None = None
) -> dict[str, list[Result]]:
    """The results of several tables whose runs are below ``folder``."""
    problems = problems or {}
    return {
        name: [collect(row, folder / row.name, problems.get(row, "")) for row in rows] for name, rows in tables.items()
    }


@cache
def _of_row(row: Row) -> dict[str, Any]:
    """What is known before anything is trained."""
    experiment = row.experiment
    return {
        "name": row.name,
        "preset": row.preset,
        "dataset": experiment.dataset,
        "k": experiment.model.k,
        "metric": experiment.task.metric,
        "protocol": experiment.training.protocol.kind,
        "parameters": count_parameters(experiment),
        **({} if row.settings else _of_paper(load_preset(row.preset).paper)),
    }


def _of_paper(paper: PaperRow | None) -> dict[str, Any]:
    if paper is None:
        return {}
    return {
        "paper_test": paper.test,
        "paper_test_sd": paper.test_sd,
        "paper_train": paper.train,
        "paper_train_sd": paper.train_sd,
        "paper_epochs": paper.epochs,
        "paper_seconds_per_epoch": paper.epoch_s,
        "paper_parameters": paper.parameters,
    }


def _of_begun(begun: Mapping[Run, Sequence[dict[str, float | None]]]) -> dict[str, Any]:
    histories = list(begun.values())
    furthest = max(begun, key=lambda run: len(begun[run]))
    metric, protocol = furthest.config.task.metric, furthest.config.training.protocol
    seconds = [row["seconds"] or 0.0 for history in histories for row in history]
    return {
        "protocol": protocol.kind,
        "begun": len(begun),
        "epochs_of_begun": f"{len(begun[furthest])} of {protocol.max_epochs}",
        **_mean_and_sd("val", [history[-1][f"val_{metric}"] for history in histories]),
        **_mean_and_sd("train", [history[-1][f"train_{metric}"] for history in histories]),
        "epochs": float(np.mean([len(history) for history in histories])),
        "seconds_per_epoch": float(np.mean(seconds)),
    }


def _mean_and_sd(name: str, values: Sequence[float | None]) -> dict[str, float | None]:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return {name: None, f"{name}_sd": None}
    return {name: float(np.mean(known)), f"{name}_sd": float(np.std(known))}


def _of_finished(runs: Sequence[Run]) -> dict[str, Any]:
    summary = summarize(runs)
    metric = summary["metric"]
    values: dict[str, Any] = {
        "protocol": summary["protocol"],
        "parameters": summary["parameters"],
        "runs": len(runs),
        "constant": (summary["constant"].get("test", {}).get(metric) or {}).get("mean"),
        "epochs": summary["epochs"]["mean"],
        "seconds_per_epoch": summary["seconds_per_epoch"]["mean"],
    }
    for split in SPLITS:
        score = summary["reported"].get(split, {}).get(metric) or {}
        values |= {split: score.get("mean"), f"{split}_sd": score.get("sd")}
    return values


def _of_those_that_predict_as_one(runs: Sequence[Run]) -> dict[str, Any]:
    """Of what several networks, or networks and a forest, say together, that is what counts."""
    scores = [run.summary["together"] for run in runs if run.is_finished and "together" in run.summary]
    metric = runs[0].config.task.metric
    found: dict[str, Any] = {}
    for split in ("val", "test") if scores else ():
        found |= _mean_and_sd(split, [one[split]["together"][metric] for one in scores])
        if len(scores) == 1:
            found[f"{split}_sd"] = None
    return found


HEADER = (
    *("preset", "seeds", "runs", "metric", "test", "paper", "difference"),
    *("val", "train", "epochs", "s/epoch", "#param"),
)


def as_text(results: Sequence[Result]) -> list[list[str]]:
    """A header and a row for each result; where the paper has a number it stands beside ours."""
    return [list(HEADER), *(_text(result) for result in results)]


def _text(result: Result) -> list[str]:
    metric = result.metric
    same = result.paper_parameters in (None, result.parameters)
    parameters = f"{result.parameters:,}" + ("" if same else f" (paper {result.paper_parameters:,})")
    runs = result.runs or result.begun
    return [
        result.name,
        result.seeds or "–",
        _runs(result),
        metric,
        _spread(metric, result.test, result.test_sd, runs),
        _spread(metric, result.paper_test, result.paper_test_sd),
        "–" if result.difference is None else f"{result.difference:+.3f}",
        _spread(metric, result.val, result.val_sd, runs),
        _spread(metric, result.train, result.train_sd, runs),
        _beside(result.epochs, result.paper_epochs, 0),
        _beside(result.seconds_per_epoch, result.paper_seconds_per_epoch, 1),
        parameters,
    ]


def _runs(result: Result) -> str:
    """How many are finished; of the others how far they are."""
    begun = f"{result.begun} at epoch {result.epochs_of_begun}" if result.begun else ""
    known = ([str(result.runs)] if result.runs else []) + ([begun] if begun else [])
    return ", ".join(known) or "–"


def notes_as_text(results: Sequence[Result]) -> list[str]:
    """For each data set, what a predictor gets on the test graphs that knows the training targets and nothing else.

    And what kept rows from being trained.
    """
    lines = {}
    for result in results:
        if result.constant is not None:
            what = CONSTANT[load_preset(result.preset).task.kind]
            lines[result.dataset] = (
                f"{result.dataset}, {what}: {result.metric} {format_score(result.metric, result.constant)}"
            )
    return [*lines.values(), *(f"{result.name}: {result.problem}" for result in results if result.problem)]


def _spread(metric: str, mean: float | None, sd: float | None, runs: int = 2) -> str:
    """Mean ± standard deviation; of one run the score alone."""
    if mean is None or sd is None or runs == 1:
        return format_score(metric, mean)
    return format_score(metric, {"mean": mean, "sd": sd})


def _beside(ours: float | None, paper: float | None, digits: int) -> str:
    texts = ["–" if value is None else f"{value:.{digits}f}" for value in (ours, paper)]
    return texts[0] if paper is None else " / ".join(texts)


def baselines_as_text(results: Sequence[Result]) -> list[list[str]]:
    """Table 2: for each data set the scores that the paper quotes, the paper's own and ours."""
    rows = [["data set", "model", "test", "from"]]
    for result in results:
        metric = result.metric
        for one in BASELINES:
            if one.dataset == result.dataset:
                rows.append([one.dataset, one.model, _spread(metric, one.test, one.test_sd), "quoted by the paper"])
        model = result.name.partition("/")[2]
        rows.append([result.dataset, model, _spread(metric, result.paper_test, result.paper_test_sd), "the paper"])
        rows.append(
            [
                result.dataset,
                model,
                _spread(metric, result.test, result.test_sd, result.runs),
                f"ours, {result.runs} run{'s' * (result.runs != 1)}",
            ]
        )
    return rows


NOTE = (
    "Numbers with two values are ours / the paper's; ± is the standard deviation over runs (seeds, folds). "
    "Runs at an epoch are not finished: where a row has no other, its scores are those of that epoch."
)


def file_name(table: str) -> str:
    """Of a table's files, without ending."""
    return table.replace("/", "-")


def rows_of_text(results: Sequence[Result], table: str) -> list[list[str]]:
    """A table of that name as text."""
    return baselines_as_text(results) if table == "table2" else as_text(results)


def write_tables(tables: Mapping[str, Sequence[Result]], folder: Path) -> None:
    """Write of each table a CSV file with every value and a Markdown file with what is printed."""
    make_folder(folder)
    for name, results in tables.items():
        stem = file_name(name)
        write_table(folder / f"{stem}.csv", [asdict(result) for result in results])
        text = rows_of_text(results, name)
        lines = ["| " + " | ".join(row) + " |" for row in text]
        lines.insert(1, "|" + " --- |" * len(text[0]))
        write_text(folder / f"{stem}.md", "\n".join([*lines, "", *notes_as_text(results), "", NOTE, ""]))
