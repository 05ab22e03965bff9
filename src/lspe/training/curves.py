"""Losses, score and learning rate of a run as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def plot_curves(history: Sequence[dict[str, float | None]], metric: str, path: Path) -> None:
    """Draw the rows of metrics.csv: loss, score and learning rate over the epochs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3), layout="constrained")
    loss, score, lr = figure.subplots(1, 3)
    epochs = [row["epoch"] for row in history]

    def draw(axes: Any, names: dict[str, str]) -> None:
        for column, label in names.items():
            values = [float("nan") if row[column] is None else row[column] for row in history]
            axes.plot(epochs, values, label=label, linewidth=1)
        axes.set_xlabel("epoch")

    draw(loss, {"train_loss": "training", "val_loss": "validation"})
    loss.set_title("loss")
    loss.legend(frameon=False)
    draw(score, {f"train_{metric}": "training", f"val_{metric}": "validation"})
    score.set_title(metric)
    draw(lr, {"lr": "learning rate"})
    lr.set_title("learning rate")
    figure.savefig(path, dpi=120)
