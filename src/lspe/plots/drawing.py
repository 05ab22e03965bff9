"""Graphs and vectors on matplotlib axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lspe.plots.drawable_graphs import Sketch
from lspe.plots.style import INK, MUTED, ink_on

RADIUS = 0.3
_GRAPH_RADIUS = 0.24  # edges of other graphs than molecules pass close by their nodes
_SMALLEST_BOX = (4.5, 2.0)
_BOND_GAP = 0.14
_CELL = 1.65


def draw_graph(
    axes: Any,
    sketch: Sketch,
    colours: Sequence[Any],
    texts: Sequence[str] | None = None,
    *,
    ringed: Sequence[bool] | None = None,
    box: NDArray[np.float64] | None = None,
) -> None:
    """Draw nodes as discs with a text inside, `ringed` ones with a bold outline, and edges as bonds.

    `box` [2] is the width and height to leave for it: the same for several graphs draws them to one scale.
    """
    from matplotlib.patches import Circle

    radius = RADIUS if sketch.is_molecule else _GRAPH_RADIUS
    for (i, j), order in zip(sketch.edges, sketch.orders, strict=True):
        _draw_edge(axes, sketch.places[i], sketch.places[j], order, radius, directed=sketch.directed)
    for node, place in enumerate(sketch.places):
        bold = ringed is not None and ringed[node]
        axes.add_patch(
            Circle(place, radius, facecolor=colours[node], edgecolor=INK if bold else "white",
                   linewidth=1.6 if bold else 0.8, zorder=3)
        )  # fmt: skip
        if texts is not None and texts[node]:
            axes.annotate(
                texts[node], place, ha="center", va="center_baseline", size=6.5, color=ink_on(colours[node]), zorder=4
            )
    axes.set_aspect("equal")
    axes.set_axis_off()
    width, height = (common_box([sketch]) if box is None else box) / 2
    axes.set_xlim(-width, width)
    axes.set_ylim(-height, height)


def common_box(sketches: Sequence[Sketch]) -> NDArray[np.float64]:
    """The width and height [2] that each of some graphs fits into; tiny graphs are not blown up."""
    spans = [np.ptp(one.places, axis=0) + 3 * RADIUS for one in sketches]
    return np.max([*spans, _SMALLEST_BOX], axis=0)


def _draw_edge(axes: Any, start: NDArray[Any], end: NDArray[Any], order: int, radius: float, *, directed: bool) -> None:
    along = end - start
    length = float(np.linalg.norm(along))
    if length < 1e-9:
        axes.add_patch(_loop(start, radius))
        return
    across = np.array([-along[1], along[0]]) / length
    if directed:
        axes.annotate(
            "", end - along / length * radius, start,
            arrowprops={"arrowstyle": "-|>", "color": MUTED, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}, zorder=2,
        )  # fmt: skip
        return
    for offset in (np.arange(order) - (order - 1) / 2) * _BOND_GAP:
        line = np.array([start, end]) + offset * across
        axes.plot(line[:, 0], line[:, 1], color=MUTED, linewidth=1.3, solid_capstyle="round", zorder=1)


def _loop(place: NDArray[Any], radius: float) -> Any:
    from matplotlib.patches import Circle

    x, y = place
    return Circle((x, y + 1.3 * radius), radius, fill=False, edgecolor=MUTED, linewidth=1.2, zorder=1)


def draw_vectors(
    axes: Any, vectors: NDArray[np.float64], colours: Sequence[Any], notes: Sequence[str], *, marked: int | None = None
) -> None:
    """Draw one row a vector: a disc in its colour, its values in cells tinted by size, and a note.

    The header of the column `marked` (from 1 on) is set in bold.
    """
    from matplotlib import colormaps
    from matplotlib.patches import Circle, Rectangle

    tint = colormaps["Blues"]
    top = max(float(vectors.max()), 1e-9)
    rows, steps = vectors.shape
    for row in range(rows):
        axes.add_patch(Circle((-0.5, row), 0.27, facecolor=colours[row], edgecolor="none"))
        for step in range(steps):
            value = float(vectors[row, step])
            fill = tint(0.04 + 0.46 * value / top)
            left = step * _CELL
            axes.add_patch(Rectangle((left, row - 0.42), _CELL - 0.08, 0.84, facecolor=fill, edgecolor="none"))
            axes.annotate(
                f"{value:.3f}" if value > 5e-4 else "0", (left + _CELL / 2, row), ha="center", va="center_baseline",
                size=7, color=ink_on(fill),
            )  # fmt: skip
        axes.annotate(notes[row], (steps * _CELL + 0.1, row), ha="left", va="center_baseline", size=7.5, color=MUTED)
    for step in range(1, steps + 1):
        bold = step == marked
        axes.annotate(
            f"{step}", ((step - 0.5) * _CELL, -0.6), ha="center", va="bottom", size=7.5,
            color=INK if bold else MUTED, weight="bold" if bold else "normal",
        )  # fmt: skip
    axes.annotate("step", (-0.15, -0.6), ha="right", va="bottom", size=7.5, color=MUTED)
    axes.set_xlim(-1.4, steps * _CELL + 1.4)
    axes.set_ylim(rows - 0.4, -1.3)
    axes.set_aspect("equal")
    axes.set_axis_off()
