"""The results as a picture: the test score of each row beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lspe.plots.scores import METRIC_NAMES, KScore, score_against_k
from lspe.plots.style import FAINT, MUTED, OKABE_ITO, save, style
from lspe.reproduce.results import Result


def plot(results: Sequence[Result], name: str, stem: Path) -> None:
    """Draw the results of table ``name`` into ``stem``.png; without any result there is nothing to draw."""
    known = [result for result in results if result.test is not None]
    if name == "k-study" and known:
        save(score_against_k(_by_preset(known)), stem, "png")
    elif known:
        save(beside_the_paper(results), stem, "png")


def _by_preset(results: Sequence[Result]) -> dict[str, list[KScore]]:
    study: dict[str, list[KScore]] = {}
    for result in results:
        assert result.test is not None
        assert result.test_sd is not None
        study.setdefault(result.preset, []).append(KScore(result.k, result.test, result.test_sd))
    return study


def beside_the_paper(results: Sequence[Result]) -> Any:
    """One panel a data set, one line per row: our mean ± spread, and the paper's."""
    from matplotlib.figure import Figure

    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.dataset, []).append(result)
    rows = max(len(group) for group in groups.values())
    with style():
        figure = Figure(figsize=(4.2 * len(groups), 1.0 + 0.35 * max(rows, 3)), layout="constrained")
        panels = figure.subplots(1, len(groups), squeeze=False)[0]
        for axes, (dataset, group) in zip(panels, groups.items(), strict=True):
            ours = [(result.test, result.test_sd) for result in group]
            paper = [(result.paper_test, result.paper_test_sd) for result in group]
            _points(axes, ours, -0.12, OKABE_ITO[0], "o", "ours")
            _points(axes, paper, 0.12, MUTED, "D", "paper")
            axes.set_yticks(range(len(group)), [result.name.partition("/")[2] for result in group])
            axes.set_ylim(len(group) - 0.5, -0.5)
            axes.set_xlabel(f"test {METRIC_NAMES[group[0].metric]}")
            axes.set_title(dataset)
            axes.grid(axis="x", color=FAINT)
            if axes.get_legend_handles_labels()[0]:
                axes.legend()
    return figure


def _points(
    axes: Any,
    scores: Sequence[tuple[float | None, float | None]],
    offset: float,
    colour: str,
    marker: str,
    label: str,
) -> None:
    known = [(mean, row + offset, sd) for row, (mean, sd) in enumerate(scores) if mean is not None]
    if known:
        mean, row, sd = zip(*known, strict=True)
        axes.errorbar(
            mean, row, xerr=sd, color=colour, marker=marker, markersize=4.5, capsize=2.5, linestyle="none", label=label
        )
