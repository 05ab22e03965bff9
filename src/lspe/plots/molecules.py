"""Molecules of ZINC, atoms in the colour of their random walk encoding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lspe.data import PackedGraphs
from lspe.encodings import kinds_by_column, random_walk_encoding
from lspe.plots.drawable_graphs import Sketch, sketch_atoms
from lspe.plots.drawing import common_box, draw_graph
from lspe.plots.style import MUTED, kind_colours, style

PAPER_MOLECULES = (91, 967, 212, 672)
"""Positions in the validation split of the molecules that the paper draws."""


@dataclass(frozen=True)
class ColouredMolecule:
    r"""A molecule and the kind of each atom, :math:`[n]`: atoms of one kind have the same encoding."""

    index: int
    sketch: Sketch
    kinds: NDArray[np.int64]

    @property
    def distinct(self) -> int:
        """The number of different encodings."""
        return int(self.kinds.max()) + 1


def colour_molecules(
    graphs: PackedGraphs, vocabulary: Sequence[str], indices: Sequence[int], k: int = 24
) -> list[ColouredMolecule]:
    """The molecules at `indices` of a set with ZINC's atom and bond types, with the kinds that k steps tell apart."""
    found = []
    for index in indices:
        data = graphs[index]
        encoding = random_walk_encoding(data.edge_index, data.num_nodes, k, dtype=torch.float64)
        once = data.edge_index[0] < data.edge_index[1]
        bonds = torch.cat([data.edge_index, data.edge_attr.view(1, -1)])[:, once].t().tolist()
        symbols, charges = zip(*(_element_and_charge(vocabulary[kind]) for kind in data.x.tolist()), strict=True)
        found.append(
            ColouredMolecule(index, sketch_atoms(symbols, charges, bonds), kinds_by_column(encoding)[-1].numpy())
        )
    return found


def _element_and_charge(atom_type: str) -> tuple[str, int]:
    """``N H2 +`` is nitrogen with charge 1."""
    element, *rest = atom_type.split()
    charge = next((part for part in rest if re.fullmatch(r"[+-]\d*", part)), "+0")
    return element, int(charge if len(charge) > 1 else f"{charge}1")


def coloured_molecules(molecules: Sequence[ColouredMolecule]) -> Any:
    """Molecules in a square; each atom has the number and colour of its kind, shared kinds a bold outline."""
    from matplotlib.figure import Figure

    with style():
        columns = 2
        rows = -(-len(molecules) // columns)
        box = common_box([molecule.sketch for molecule in molecules])
        figure = Figure(figsize=(7.2, (3.6 * box[1] / box[0] + 0.35) * rows + 0.2), layout="constrained")
        panels = np.reshape(figure.subplots(rows, columns, squeeze=False), -1)
        for axes in panels[len(molecules) :]:
            axes.set_axis_off()
        for axes, molecule in zip(panels, molecules, strict=False):
            colours = kind_colours(molecule.distinct)
            shared = np.bincount(molecule.kinds) > 1
            draw_graph(
                axes, molecule.sketch, [colours[kind] for kind in molecule.kinds],
                [str(kind + 1) for kind in molecule.kinds], ringed=[bool(shared[kind]) for kind in molecule.kinds],
                box=box,
            )  # fmt: skip
            axes.set_title(
                f"validation {molecule.index}: {molecule.distinct} distinct of {molecule.sketch.num_nodes} nodes",
                loc="center",
            )
        figure.supxlabel(
            "One number and colour for each distinct encoding; a bold outline where several nodes share it.",
            size=8, color=MUTED,
        )  # fmt: skip
    return figure
