"""A search as pictures: how its trials did one after the other, and which settings mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lspe.plots.style import FAINT, MUTED, OKABE_ITO, style


class TrialResult(NamedTuple):
    """A trial: its number, the lowest validation loss it reached, and whether it came to its end."""

    number: int
    loss: float
    is_whole: bool


def search_history(trials: Sequence[TrialResult]) -> Any:
    """The loss of each trial, and the lowest of all that came to their end so far."""
    from matplotlib.figure import Figure

    whole = [one for one in trials if one.is_whole]
    ended = [one for one in trials if not one.is_whole]
    lowest = np.minimum.accumulate([one.loss for one in whole])
    with style():
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.step([one.number for one in whole], lowest, where="post", color=OKABE_ITO[0], label="lowest so far")
        axes.scatter([one.number for one in whole], [one.loss for one in whole], s=14, color=MUTED, label="trial")
        if ended:
            places = [one.number for one in ended], [one.loss for one in ended]
            axes.scatter(*places, s=18, marker="x", linewidth=1, color=OKABE_ITO[4], label="ended early")
        axes.set(title="Search", xlabel="trial", ylabel="validation loss")
        axes.locator_params(axis="x", integer=True)
        axes.grid(axis="y", color=FAINT)
        axes.legend()
    return figure


def setting_importance(shares: Mapping[str, float]) -> Any:
    """Bars: the part of the losses' variance that each setting explains, the largest at the top."""
    from matplotlib.figure import Figure

    names = sorted(shares, key=lambda name: shares[name])
    with style():
        figure = Figure(figsize=(5.2, 0.9 + 0.3 * len(names)), layout="constrained")
        axes = figure.subplots()
        axes.barh(names, [shares[name] for name in names], color=OKABE_ITO[0], height=0.6)
        axes.set(title="What mattered", xlabel="part of the variance of the validation loss", xlim=(0, 1))
        axes.grid(axis="x", color=FAINT)
    return figure
