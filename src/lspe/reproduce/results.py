"""Ours beside the paper's: as values, as a table of text, as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lspe.experiment import PaperRow, count_parameters, load_preset
from lspe.experiment.overriding import override
from lspe.experiment.reading import read_experiment
from lspe.experiment.task import format_score
from lspe.experiment.value import CONFIG
from lspe.files import write_table, write_text
from lspe.reproduce.tables import BASELINES, Row
from lspe.training.run import open_runs
from lspe.training.seeds_and_folds import summarize
from lspe.training.summary import CONSTANT


@dataclass(frozen=True)
class Result:
    """One row: what we got, what the paper got, and the difference. ``None`` is what there is not (yet)."""

    name: str
    preset: str
    dataset: str
    k: int
    metric: str
    protocol: str
    parameters: int
    runs: int = 0
    test: float | None = None
    test_sd: float | None = None
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
    """The result of the finished runs below ``folder``."""
    experiment = override(read_experiment(row.preset), row.settings)
    values: dict[str, Any] = {
        "name": row.name,
        "preset": row.preset,
        "dataset": experiment.dataset,
        "k": experiment.model.k,
        "metric": experiment.task.metric,
        "protocol": experiment.training.protocol.kind,
        "parameters": count_parameters(experiment),
        "problem": problem,
    }
    if not row.settings:
        values |= _of_paper(load_preset(row.preset).paper)
    parts = [run for path in sorted(folder.glob(f"seed*/{CONFIG}")) for run in open_runs(path.parent)]
    runs = [run for run in parts if run.is_finished]
    if runs:
        values |= _of_runs(summarize(runs), len(runs))
    if values.get("test") is not None and values.get("paper_test") is not None:
        values["difference"] = values["test"] - values["paper_test"]
    return Result(**values)


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


def _of_runs(summary: dict[str, Any], runs: int) -> dict[str, Any]:
    metric = summary["metric"]
    test, train = (summary["reported"].get(split, {}).get(metric) or {} for split in ("test", "train"))
    return {
        "protocol": summary["protocol"],
        "parameters": summary["parameters"],
        "runs": runs,
        "test": test.get("mean"),
        "test_sd": test.get("sd"),
        "train": train.get("mean"),
        "train_sd": train.get("sd"),
        "constant": (summary["constant"].get("test", {}).get(metric) or {}).get("mean"),
        "epochs": summary["epochs"]["mean"],
        "seconds_per_epoch": summary["seconds_per_epoch"]["mean"],
    }


HEADER = ("preset", "metric", "runs", "test", "paper", "difference", "train", "paper", "epochs", "s/epoch", "#param")


def as_text(results: Sequence[Result]) -> list[list[str]]:
    """A header and a row for each result; where the paper has a number it stands beside ours."""
    return [list(HEADER), *(_text(result) for result in results)]


def _text(result: Result) -> list[str]:
    metric = result.metric
    same = result.paper_parameters in (None, result.parameters)
    parameters = f"{result.parameters:,}" + ("" if same else f" (paper {result.paper_parameters:,})")
    return [
        result.name,
        metric,
        str(result.runs) if result.runs else result.problem or "–",
        _spread(metric, result.test, result.test_sd, result.runs),
        _spread(metric, result.paper_test, result.paper_test_sd),
        "–" if result.difference is None else f"{result.difference:+.3f}",
        _spread(metric, result.train, result.train_sd, result.runs),
        _spread(metric, result.paper_train, result.paper_train_sd),
        _beside(result.epochs, result.paper_epochs, 0),
        _beside(result.seconds_per_epoch, result.paper_seconds_per_epoch, 1),
        parameters,
    ]


def constants_as_text(results: Sequence[Result]) -> list[str]:
    """For each data set, what a predictor gets on the test graphs that knows the training targets and nothing else."""
    lines = {}
    for result in results:
        if result.constant is not None:
            what = CONSTANT[load_preset(result.preset).task.kind]
            lines[result.dataset] = (
                f"{result.dataset}, {what}: {result.metric} {format_score(result.metric, result.constant)}"
            )
    return list(lines.values())


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


def write(results: Sequence[Result], folder: Path, name: str) -> None:
    """Write ``name``.csv with every value and ``name``.md with the table as text."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / f"{name}.csv", [asdict(result) for result in results])
    text = baselines_as_text(results) if name == "table2" else as_text(results)
    lines = ["| " + " | ".join(row) + " |" for row in text]
    lines.insert(1, "|" + " --- |" * len(text[0]))
    note = "Numbers with two values are ours / the paper's; ± is the standard deviation over runs (seeds, folds)."
    write_text(folder / f"{name}.md", "\n".join([*lines, "", *constants_as_text(results), "", note, ""]))
