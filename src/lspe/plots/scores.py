"""Scores as pictures: the test score against k, and the course of a training."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lspe.errors import UserError
from lspe.experiment import load_preset
from lspe.plots.style import FAINT, MUTED, OKABE_ITO, panel_letters, style

if TYPE_CHECKING:
    from lspe.training.run import Run

METRIC_NAMES = {
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
    "roc_auc": "ROC AUC",
    "ap": "average precision",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
}
_SMALLER_IS_BETTER = {"mae", "rmse"}
_ASIDE = 0.6  # the paper's score is drawn beside ours, not under it
_COLUMNS = ("preset", "k", "test", "test_sd")


@dataclass(frozen=True)
class KScore:
    """The test score of a preset with an encoding of k columns: mean and spread over seeds."""

    k: int
    test: float
    test_sd: float


def read_k_study(path: str | os.PathLike[str]) -> dict[str, list[KScore]]:
    """The scores of each preset by ascending k, from a table with the columns preset, k, test and test_sd."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            missing = [name for name in _COLUMNS if name not in (table.fieldnames or [])]
            if missing:
                raise UserError(f"{path} has no column {missing[0]!r}; a study of k has {', '.join(_COLUMNS)}")
            study: dict[str, list[KScore]] = {}
            for row in table:
                study.setdefault(row["preset"], []).append(_k_score(row, f"{path}, row {table.line_num}"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; lspe reproduce k-study writes such a table") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not a table of a study of k: {error}") from None
    if not study:
        raise UserError(f"{path} has no rows")
    return {preset: sorted(scores, key=lambda score: score.k) for preset, scores in study.items()}


def _k_score(row: Mapping[str, str], place: str) -> KScore:
    try:
        score = KScore(int(row["k"]), float(row["test"]), float(row["test_sd"]))
    except (TypeError, ValueError):
        raise UserError(
            f"{place}: k, test and test_sd must be numbers, got {[row[name] for name in _COLUMNS]}"
        ) from None
    if not np.isfinite([score.test, score.test_sd]).all():
        raise UserError(f"{place}: the score is not a finite number")
    return score


def score_against_k(study: Mapping[str, Sequence[KScore]]) -> Any:
    """One panel a preset: mean ± spread over seeds against k, the best k marked, the paper's score beside it."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(3.5 * len(study), 2.7), layout="constrained")
        panels = figure.subplots(1, len(study), squeeze=False)[0]
        for axes, (name, scores) in zip(panels, study.items(), strict=True):
            preset = load_preset(name)
            metric = preset.task.metric
            k = [score.k for score in scores]
            test = [score.test for score in scores]
            best = int(np.argmin(test) if metric in _SMALLER_IS_BETTER else np.argmax(test))
            axes.errorbar(
                k, test, [score.test_sd for score in scores], color=OKABE_ITO[0], marker="o", markersize=4.5,
                capsize=2.5, elinewidth=1, label="ours, mean ± sd",
            )  # fmt: skip
            axes.plot(
                k[best], test[best], "o", markersize=9, markerfacecolor="none", markeredgecolor=OKABE_ITO[4],
                markeredgewidth=1.6, label=f"best, k = {k[best]}",
            )  # fmt: skip
            if preset.paper is not None:
                axes.errorbar(
                    [preset.model.k + _ASIDE], [preset.paper.test], [preset.paper.test_sd], color=MUTED, marker="D",
                    markersize=4, capsize=2.5, elinewidth=1, linestyle="none", label=f"paper, k = {preset.model.k}",
                )  # fmt: skip
            axes.set_xticks(k)
            axes.set_xlabel("k, steps of the random walk")
            axes.set_ylabel(f"test {METRIC_NAMES[metric]}")
            axes.set_title(name)
            axes.grid(axis="y", color=FAINT)
            lines, labels = axes.get_legend_handles_labels()
            order = sorted(range(len(lines)), key=lambda i: not labels[i].startswith("ours"))
            axes.legend([lines[i] for i in order], [labels[i] for i in order])
        if len(panels) > 1:
            panel_letters(panels)
    return figure


def training_curves(runs: Sequence[Run]) -> Any:
    """Loss, score and learning rate over the epochs, training dashed and validation solid, a colour a run."""
    from matplotlib.figure import Figure

    metrics = {run.config.task.metric for run in runs}
    if len(metrics) > 1:
        raise UserError(f"the runs are scored differently ({', '.join(sorted(metrics))}); draw them one by one")
    metric = metrics.pop()
    with style():
        figure = Figure(figsize=(9.6, 2.8), layout="constrained")
        loss, score, rate = figure.subplots(1, 3)
        for number, run in enumerate(runs):
            if not run.history:
                raise UserError(f"{run.path} has no metrics.csv yet: no epoch has finished")
            colour = OKABE_ITO[number % len(OKABE_ITO)]
            for axes, what in ((loss, "loss"), (score, metric)):
                _draw_column(axes, run.history, f"train_{what}", colour, "--", "training")
                _draw_column(axes, run.history, f"val_{what}", colour, "-", "validation")
            _draw_column(rate, run.history, "lr", colour, "-", run.path.name)
        for axes, title in ((loss, "Loss"), (score, METRIC_NAMES[metric]), (rate, "Learning rate")):
            axes.set_title(title)
            axes.set_xlabel("epoch")
            axes.grid(axis="y", color=FAINT)
        rate.set_yscale("log")
        loss.legend(handles=loss.get_lines()[:2])
        if len(runs) > 1:
            rate.legend()
        panel_letters([loss, score, rate])
    return figure


def _draw_column(
    axes: Any, history: Sequence[Mapping[str, float | None]], column: str, colour: str, line: str, label: str
) -> None:
    values = [np.nan if (value := row[column]) is None else value for row in history]
    axes.plot([row["epoch"] for row in history], values, line, color=colour, linewidth=1.2, label=label)
