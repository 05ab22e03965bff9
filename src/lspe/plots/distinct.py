"""How many nodes of a graph an encoding tells apart: the number of distinct encodings against the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lspe.data import PackedGraphs
from lspe.encodings import laplacian_encoding, random_walk_encoding, uniqueness
from lspe.plots.style import FAINT, INK, MUTED, panel_letters, style


@dataclass(frozen=True)
class Counts:
    r"""Nodes and distinct encodings of each graph of a set.

    Shapes:
        - **nodes**, **distinct:** :math:`[G]`
    """

    title: str
    nodes: NDArray[np.int64]
    distinct: NDArray[np.int64]

    def points(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The different pairs (nodes, distinct), :math:`[m, 2]`, and how many graphs have each, :math:`[m]`."""
        pairs, graphs = np.unique(np.stack([self.nodes, self.distinct], axis=1), axis=0, return_counts=True)
        return pairs, graphs


def count_distinct(graphs: PackedGraphs, *, lappe: int = 36, rwpe: int = 24) -> tuple[Counts, Counts]:
    """The counts for the Laplacian encoding with `lappe` columns and the random walk encoding with `rwpe`."""
    batch = graphs.batch()
    nodes = batch.ptr.diff().numpy()
    laplacian = laplacian_encoding(batch.edge_index, None, lappe, batch=batch.batch).vectors
    walk = random_walk_encoding(batch.edge_index, None, rwpe, batch=batch.batch)
    return (
        Counts(f"Laplacian, k = {lappe}", nodes, uniqueness(laplacian, batch.batch).numpy()),
        Counts(f"Random walk, k = {rwpe}", nodes, uniqueness(walk, batch.batch).numpy()),
    )


def distinct_encodings(*counts: Counts) -> Any:
    """One panel an encoding: a disc for each pair (nodes, distinct), larger and darker the more graphs have it."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    with style():
        figure = Figure(figsize=(3.5 * len(counts) + 0.6, 3.4), layout="constrained")
        panels = list(figure.subplots(1, len(counts), sharex=True, sharey=True, squeeze=False)[0])
        most = max(int(one.points()[1].max()) for one in counts)
        low = min(int(one.distinct.min()) for one in counts)
        high = max(int(one.nodes.max()) for one in counts)
        for axes, one in zip(panels, counts, strict=True):
            pairs, graphs = one.points()
            axes.plot([low, high], [low, high], color=MUTED, linewidth=0.8, zorder=1)
            order = np.argsort(graphs)
            marks = axes.scatter(
                pairs[order, 0], pairs[order, 1], s=6 + 70 * (graphs[order] / most) ** 0.7, c=graphs[order],
                cmap="cividis_r", norm=LogNorm(1, most), edgecolors="white", linewidths=0.4, zorder=2,
            )  # fmt: skip
            axes.set_title(one.title)
            axes.set_xlabel("nodes in the graph")
            axes.grid(color=FAINT)
            whole = int((one.nodes == one.distinct).sum())
            axes.annotate(
                f"every node its own:\n{whole:,} of {len(one.nodes):,} graphs", (0.97, 0.04), xycoords="axes fraction",
                ha="right", va="bottom", size=8, color=INK,
            )  # fmt: skip
        panels[0].set_ylabel("distinct encodings")
        panel_letters(panels)
        bar = figure.colorbar(marks, ax=panels, label="graphs at this point", shrink=0.8, pad=0.02)
        bar.ax.yaxis.set_major_locator(FixedLocator([1, 3, 10, 30, 100, 300, 1000]))
        bar.ax.yaxis.set_major_formatter(ScalarFormatter())
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.outline.set_visible(False)
    return figure
