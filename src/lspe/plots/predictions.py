"""How well a run predicts: predicted against true values, or receiver operating characteristics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lspe.plots.style import FAINT, MUTED, OKABE_ITO, style
from lspe.predict.splits import SplitPredictions

CURVES = 6
"""Targets, or classes, in one panel."""


def picture_of(test: SplitPredictions) -> tuple[str, Any]:
    """The picture that fits the task, and its name: ``parity`` or ``roc``."""
    return ("parity", parity(test)) if test.task == "regression" else ("roc", roc(test))


def parity(test: SplitPredictions) -> Any:
    """A panel per target: predicted against true values, the diagonal, MAE, RMSE and R²."""
    from matplotlib.figure import Figure

    names = test.task_names
    columns = min(3 if len(names) <= 9 else 6, len(names))
    rows = math.ceil(len(names) / columns)
    with style():
        figure = Figure(figsize=(3.2 * columns, 3.1 * rows), layout="constrained")
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes, name, true, predicted in zip(panels, names, test.y.T, test.predicted.T, strict=False):
            known = ~np.isnan(true)
            _draw_parity(axes, name, true[known], predicted[known])
        for axes in panels[len(names) :]:
            axes.set_visible(False)
    return figure


def _draw_parity(axes: Any, name: str, true: NDArray[np.float64], predicted: NDArray[np.float64]) -> None:
    both = np.concatenate([true, predicted])
    low, high = (float(both.min()), float(both.max())) if len(both) else (0.0, 1.0)
    margin = 0.05 * (high - low) or 1.0
    ends = (low - margin, high + margin)
    axes.plot(ends, ends, color=MUTED, linewidth=0.8)
    transparency = 0.75 if len(true) < 500 else 0.35
    axes.scatter(true, predicted, s=13, color=OKABE_ITO[0], alpha=transparency, edgecolors="none")
    axes.set(xlim=ends, ylim=ends, xlabel=f"true {name}", ylabel=f"predicted {name}", title=name)
    axes.set_aspect("equal")
    axes.set_yticks(axes.get_xticks())
    axes.set(xlim=ends, ylim=ends)
    axes.grid(color=FAINT)
    if len(true):
        axes.text(0.04, 0.96, _scores(true, predicted), transform=axes.transAxes, va="top", fontsize=8)


def _scores(true: NDArray[np.float64], predicted: NDArray[np.float64]) -> str:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    mae, rmse = mean_absolute_error(true, predicted), root_mean_squared_error(true, predicted)
    lines = [f"n = {len(true):,}", f"MAE {mae:.3g}", f"RMSE {rmse:.3g}"]
    if len(np.unique(true)) > 1:
        lines.append(f"R² {r2_score(true, predicted):.3f}")
    return "\n".join(lines)


def roc(test: SplitPredictions) -> Any:
    """A curve per yes/no target, or class against all others: true against false positives, with the area below.

    A panel has as many curves as can be told apart; more targets get more panels.
    """
    from matplotlib.figure import Figure

    with style():
        questions = questions_of(test)
        panels = math.ceil(len(questions) / CURVES)
        columns = min(4, panels)
        rows = math.ceil(panels / columns)
        figure = Figure(figsize=(3.9 * columns, 3.6 * rows), layout="constrained")
        figure.suptitle(f"ROC of {len(test.y):,} test {test.level}s")
        for panel, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
            if some := questions[panel * CURVES : (panel + 1) * CURVES]:
                _draw_roc(axes, some)
            else:
                axes.set_visible(False)
    return figure


def _draw_roc(axes: Any, questions: Sequence[tuple[str, NDArray[np.float64], NDArray[np.float64]]]) -> None:
    from sklearn.metrics import auc, roc_curve

    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=":")
    for colour, (name, true, score) in zip(OKABE_ITO, questions, strict=False):
        if len(np.unique(true)) < 2:
            axes.plot([], [], color=colour, label=f"{name}: only one class")
            continue
        false_positives, true_positives, _ = roc_curve(true, score)
        area = auc(false_positives, true_positives)
        axes.plot(false_positives, true_positives, color=colour, label=f"{name}: {area:.3f}")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="false positive rate", ylabel="true positive rate")
    axes.set_aspect("equal")
    axes.grid(color=FAINT)
    axes.legend(title="area under the curve", loc="lower right")


def questions_of(test: SplitPredictions) -> list[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Name, truth (0 or 1) and probability of everything that is asked."""
    if test.task == "multiclass":
        return [
            (name, (test.y == number).astype(np.float64), test.predicted[:, number])
            for number, name in enumerate(test.class_names)
        ]
    known = ~np.isnan(test.y)
    return [
        (name, test.y[known[:, number], number], test.predicted[known[:, number], number])
        for number, name in enumerate(test.task_names)
    ]
