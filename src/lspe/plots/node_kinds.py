"""Graphs side by side, nodes in the colour of their kind, with the vectors that tell the kinds apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lspe.encodings import kinds_by_column, random_walk_encoding
from lspe.isomorphism import Comparison
from lspe.plots.drawable_graphs import Sketch, sketch_smiles
from lspe.plots.drawing import common_box, draw_graph, draw_vectors
from lspe.plots.examples import BICYCLOPENTYL, DECALIN, EXAMPLES
from lspe.plots.style import MUTED, kind_colours, style

_MOST_ROWS = 8
_MOST_STEPS = 8


@dataclass(frozen=True)
class Kinds:
    r"""The kinds of nodes that k steps of the random walk tell apart in several graphs, counted through all of them.

    Shapes:
        - **kinds:** for each graph :math:`[n]`
        - **vectors:** :math:`[\textrm{number of kinds}, k]`, the random walk encoding of each kind
    """

    sketches: tuple[Sketch, ...]
    kinds: tuple[NDArray[np.int64], ...]
    vectors: NDArray[np.float64]

    def counts(self, graph: int) -> NDArray[np.int64]:
        """How many nodes of each kind a graph has, :math:`[number of kinds]`."""
        return np.bincount(self.kinds[graph], minlength=len(self.vectors))


def find_kinds(sketches: Sequence[Sketch], k: int) -> Kinds:
    """The kinds of nodes of some graphs after k steps."""
    encoding = torch.cat(
        [random_walk_encoding(one.edge_index, one.num_nodes, k, dtype=torch.float64) for one in sketches]
    )
    kind = kinds_by_column(encoding)[-1].numpy()
    vectors = np.empty((int(kind.max()) + 1, k))
    vectors[kind] = encoding.numpy()
    ends = np.cumsum([one.num_nodes for one in sketches])[:-1]
    return Kinds(tuple(sketches), tuple(np.split(kind, ends)), vectors)


def draw_kinds(found: Kinds, titles: Sequence[str], *, marked: int | None = None, below: str = "") -> Any:
    """The graphs in a row, and under each the vectors of its kinds where they are few and short.

    `marked` is the step that tells the graphs apart. Where there is no room for the vectors, nodes show the number
    of their kind, and kinds that only one of the graphs has get a bold outline.
    """
    from matplotlib.figure import Figure

    colours = kind_colours(len(found.vectors))
    box = common_box(found.sketches)
    counts = [found.counts(graph) for graph in range(len(found.sketches))]
    rows = max(np.count_nonzero(one) for one in counts)
    listed = rows <= _MOST_ROWS and found.vectors.shape[1] <= _MOST_STEPS
    shared = np.all([one > 0 for one in counts], axis=0)
    heights = [float(np.clip(3.2 * box[1] / box[0], 1.4, 3.2)), *([0.23 * (rows + 1)] if listed else [])]

    figure = Figure(figsize=(3.5 * len(titles), sum(heights) + 0.5), layout="constrained")
    grid = figure.subplots(len(heights), len(titles), height_ratios=heights, squeeze=False)
    for graph, (sketch, title) in enumerate(zip(found.sketches, titles, strict=True)):
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
        found = find_kinds([EXAMPLES["three-regular"].sketch()], 4)
        return draw_kinds(found, ["3-regular graph on 8 nodes"])


def skip_links() -> Any:
    """CSL(11, 2) and CSL(11, 3): all nodes of a graph alike, the graphs different."""
    with style():
        found = find_kinds([EXAMPLES["csl-11-2"].sketch(), EXAMPLES["csl-11-3"].sketch()], 4)
        return draw_kinds(found, ["CSL(11, 2)", "CSL(11, 3)"], marked=3)


def decalin() -> Any:
    """Decalin and bicyclopentyl: five steps tell them apart, 1-WL does not."""
    with style():
        found = find_kinds([sketch_smiles(DECALIN), sketch_smiles(BICYCLOPENTYL)], 5)
        return draw_kinds(found, ["Decalin", "Bicyclopentyl"], marked=5)


def comparison(first: Sketch, second: Sketch, titles: Sequence[str], walk: Comparison, refinement: Comparison) -> Any:
    """Two graphs coloured by the walk at the step that first tells them apart (else after all steps), and what the
    two tests say of them.
    """
    k = walk.step or max(2, min(24, first.num_nodes, second.num_nodes))
    with style():
        found = find_kinds([first, second], k)
        return draw_kinds(found, titles, marked=walk.step, below=summary(walk, refinement))


def summary(walk: Comparison, refinement: Comparison) -> str:
    """What the random walk test and 1-WL say of two graphs, in a sentence."""
    if walk.step == 0:
        return "They are different before any step is taken: in the number of nodes or edges, or in their labels."
    if walk.step is None and refinement.step is None:
        return "Neither test tells them apart: they may be the same graph, or not."
    walks = "never" if walk.step is None else f"from step {walk.step} on"
    colours = "never" if refinement.step is None else f"from step {refinement.step} on"
    return f"They are different: random walks tell them apart {walks}, 1-WL {colours}."
