"""Graphs side by side, nodes in the colour of their kind, with the vectors that tell the kinds apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lspe.isomorphism import Comparison, in_words, node_kinds
from lspe.plots.drawable_graphs import Sketch, sketch_smiles
from lspe.plots.drawing import common_box, draw_graph, draw_vectors
from lspe.plots.examples import BICYCLOPENTYL, DECALIN, EXAMPLES
from lspe.plots.style import MUTED, kind_colours, style

_MOST_ROWS = 8
_MOST_STEPS = 8


def draw_kinds(
    sketches: Sequence[Sketch], k: int, titles: Sequence[str], *, marked: int | None = None, below: str = ""
) -> Any:
    """The graphs in a row, nodes in the colour of their kind after `k` steps, and under each the vectors of its kinds
    where they are few and short.

    `marked` is the step that tells the graphs apart. Where there is no room for the vectors, nodes show the number
    of their kind, and kinds that only one of the graphs has get a bold outline.
    """
    from matplotlib.figure import Figure

    found = node_kinds(sketches, k)
    colours = kind_colours(len(found.vectors))
    box = common_box(sketches)
    counts = [found.counts(graph) for graph in range(len(sketches))]
    rows = max(np.count_nonzero(one) for one in counts)
    listed = rows <= _MOST_ROWS and found.vectors.shape[1] <= _MOST_STEPS
    shared = np.all([one > 0 for one in counts], axis=0)
    heights = [float(np.clip(3.2 * box[1] / box[0], 1.4, 3.2)), *([0.23 * (rows + 1)] if listed else [])]

    figure = Figure(figsize=(3.5 * len(titles), sum(heights) + 0.5), layout="constrained")
    grid = figure.subplots(len(heights), len(titles), height_ratios=heights, squeeze=False)
    for graph, (sketch, title) in enumerate(zip(sketches, titles, strict=True)):
        kinds = found.kinds[graph]
        texts = _node_texts(sketch) if listed else [str(kind + 1) for kind in kinds]
        ringed = [not listed and bool(shared.any()) and not bool(shared[kind]) for kind in kinds]
        draw_graph(grid[0, graph], sketch, [colours[kind] for kind in kinds], texts, ringed=ringed, box=box)
        grid[0, graph].set_title(title, loc="center")
        if listed:
            present = np.flatnonzero(counts[graph])
            notes = [f"× {counts[graph][kind]}" for kind in present]
            draw_vectors(grid[1, graph], found.vectors[present], [colours[i] for i in present], notes, marked=marked)
    if below:
        figure.supxlabel(below, size=8, color=MUTED)
    return figure


def _node_texts(sketch: Sketch) -> list[str]:
    """Elements but carbon, or names as long as they fit into a node."""
    if sketch.is_molecule:
        return [label if (label := sketch.label(node)) != "C" else "" for node in range(sketch.num_nodes)]
    return [name if len(name) <= 3 else "" for name in sketch.names]


def three_regular() -> Any:
    """One 3-regular graph: message passing sees one kind of node, four steps see three."""
    with style():
        return draw_kinds([EXAMPLES["three-regular"].sketch()], 4, ["3-regular graph on 8 nodes"])


def skip_links() -> Any:
    """CSL(11, 2) and CSL(11, 3): all nodes of a graph alike, the graphs different."""
    with style():
        pair = [EXAMPLES["csl-11-2"].sketch(), EXAMPLES["csl-11-3"].sketch()]
        return draw_kinds(pair, 4, ["CSL(11, 2)", "CSL(11, 3)"], marked=3)


def decalin() -> Any:
    """Decalin and bicyclopentyl: five steps tell them apart, 1-WL does not."""
    with style():
        pair = [sketch_smiles(DECALIN), sketch_smiles(BICYCLOPENTYL)]
        return draw_kinds(pair, 5, ["Decalin", "Bicyclopentyl"], marked=5)


def comparison(first: Sketch, second: Sketch, titles: Sequence[str], walk: Comparison, refinement: Comparison) -> Any:
    """Two graphs coloured by the walk at the step that first tells them apart (else after all steps), and what the
    two tests say of them.
    """
    k = walk.step or max(2, min(24, first.num_nodes, second.num_nodes))
    with style():
        return draw_kinds([first, second], k, titles, marked=walk.step, below=in_words(walk, refinement))
