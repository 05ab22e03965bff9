"""How far predictions can be trusted: probabilities against frequencies, and intervals around predicted values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lspe.plots.predictions import CURVES, questions_of
from lspe.plots.style import FAINT, MUTED, OKABE_ITO, style
from lspe.predict.calibration import BINS, bins_of
from lspe.predict.predictions import Floats
from lspe.predict.splits import SplitPredictions


def picture_of_trust(test: SplitPredictions) -> tuple[str, Any] | None:
    """The picture that fits the task, and its name, ``intervals`` or ``reliability``; ``None`` without intervals."""
    if test.task != "regression":
        return "reliability", reliability(test)
    return None if test.half_widths is None else ("intervals", intervals(test, test.half_widths))


def reliability(test: SplitPredictions) -> Any:
    """How often yes is true among molecules of about the same probability, a curve per target or class."""
    from matplotlib.figure import Figure

    with style():
        questions = questions_of(test)
        panels = math.ceil(len(questions) / CURVES)
        columns = min(4, panels)
        rows = math.ceil(panels / columns)
        figure = Figure(figsize=(3.9 * columns, 3.8 * rows), layout="constrained")
        figure.suptitle(f"Probabilities of {len(test.y):,} test molecules")
        for panel, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
            some = questions[panel * CURVES : (panel + 1) * CURVES]
            axes.set_visible(bool(some))
            axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=":")
            for colour, (name, true, probability) in zip(OKABE_ITO, some, strict=False):
                said, found, count = _by_bin(true, probability)
                axes.plot(said, found, color=colour, linewidth=1, label=name)
                axes.scatter(said, found, s=6 + 60 * count / max(1, count.sum()), color=colour)
            axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="probability", ylabel="share of yes")
            axes.set_aspect("equal")
            axes.grid(color=FAINT)
            axes.legend(loc="upper left")
    return figure


def _by_bin(true: Floats, probability: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean probability, share of yes and number of molecules in each bin that has any."""
    number = bins_of(probability)
    count = np.bincount(number, minlength=BINS).astype(np.float64)
    filled = count > 0
    said = np.bincount(number, probability, minlength=BINS)[filled] / count[filled]
    return said, np.bincount(number, true, minlength=BINS)[filled] / count[filled], count[filled]


def intervals(test: SplitPredictions, half_widths: Floats) -> Any:
    """A panel per target: test molecules in order of their prediction, its interval, and the true values.

    ``half_widths`` [M, T] are those of the intervals.
    """
    from matplotlib.figure import Figure

    names = test.task_names
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    with style():
        figure = Figure(figsize=(4.2 * columns, 3.1 * rows), layout="constrained")
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        for number, (axes, name) in enumerate(zip(panels, names, strict=False)):
            known = ~np.isnan(test.y[:, number])
            order = np.argsort(test.predicted[known, number])
            predicted, true = test.predicted[known, number][order], test.y[known, number][order]
            place = np.arange(len(true))
            half = half_widths[known, number][order]
            inside = np.abs(true - predicted) <= half
            axes.fill_between(
                place, predicted - half, predicted + half, step="mid", color=OKABE_ITO[5], alpha=0.3, linewidth=0
            )
            axes.plot(place, predicted, color=OKABE_ITO[0], linewidth=1, label="predicted")
            axes.scatter(place[inside], true[inside], s=8, color=MUTED, label="true")
            axes.scatter(place[~inside], true[~inside], s=10, color=OKABE_ITO[4], label="true, outside")
            held = f"{inside.mean():.0%} of {len(true):,} true values inside" if len(true) else "no true values"
            axes.set(title=name, xlabel=f"test molecules by prediction ({held})", ylabel=name)
            axes.legend(loc="upper left")
    return figure
