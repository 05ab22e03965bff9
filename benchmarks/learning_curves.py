"""How good methods are by how many molecules there are to learn from, of what :mod:`benchmarks.tables` has found."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.table_jobs import SPLITS, TABLES, Job, metric_of, place_of
from lspe.experiment.task import LOWER_IS_BETTER

NAMES = {"rmse": "RMSE", "roc_auc": "ROC-AUC"}


def draw_learning_curves(out: Path, methods: Sequence[str], sizes: Sequence[int], path: Path) -> None:
    """A panel per table, a line per method, ours first."""
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator

    from lspe.plots.style import save, style

    curves = {table: curve for table in TABLES if (curve := learning_curves(out, table, methods, sizes))}
    if not curves:
        raise SystemExit("no table has two of these sizes for all of these methods yet")
    with style():
        figure, panels = pyplot.subplots(1, len(curves), figsize=(2.4 * len(curves), 2.6), squeeze=False)
        for axes, (table, (counts, lines)) in zip(panels[0], curves.items(), strict=True):
            for method, scores in lines.items():
                axes.plot(counts, scores, "o-", label=method, markersize=3, zorder=3 if method == methods[0] else 2)
            axes.set(title=table, xlabel="molecules", ylabel=NAMES[metric_of(table)], xscale="log")
            axes.set_xticks(counts, [f"{count:,}" for count in counts])
            if metric_of(table) in LOWER_IS_BETTER:
                axes.set_yscale("log")
                axes.yaxis.set_major_locator(LogLocator(subs=(0.6, 0.8, 1, 1.5, 2, 3, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
            axes.grid(axis="y")
        figure.tight_layout()
        figure.legend(
            *panels[0, 0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0), ncols=len(methods)
        )
        save(figure, path.with_suffix(""), "png")
        pyplot.close(figure)


def learning_curves(
    out: Path, table: str, methods: Sequence[str], sizes: Sequence[int]
) -> tuple[list[int], dict[str, list[float]]] | None:
    """The sizes of a table that were tried, and each method's score at them; ``None`` of less than two sizes.

    Scores are means over the random splits that all methods have.
    """
    means = {}
    for size in sizes:
        files = [[place_of(out, Job(table, split, size), method) for method in methods] for split in SPLITS[:-1]]
        complete = [of_split for of_split in files if all(file.exists() for file in of_split)]
        if complete:
            scores = [[json.loads(file.read_text())["score"] for file in of_split] for of_split in complete]
            means[size] = np.mean(scores, axis=0)
    if len(means) < 2:
        return None
    lines = np.stack([*means.values()], axis=1).tolist()
    return list(means), dict(zip(methods, lines, strict=True))
