"""Graphs as the page draws them: molecules by the lines that RDKit draws, others by discs and lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lspe.data.molecules.smiles import parse
from lspe.data.words import Fragments
from lspe.errors import UserError
from lspe.explore.schema import MAX_ATOMS, Edge, Node, Picture, Stroke
from lspe.plots.drawable_graphs import Sketch, sketch_molecule
from lspe.plots.examples import EXAMPLES
from lspe.plots.molecule_pictures import LineDrawing, line_drawing


@dataclass(frozen=True)
class Drawn:
    """A graph, and how RDKit draws it if it is a molecule."""

    sketch: Sketch
    lines: LineDrawing | None = None

    @classmethod
    def molecule(cls, mol: Any) -> Drawn:
        """An RDKit molecule."""
        sketch = sketch_molecule(mol)
        return cls(sketch, line_drawing(mol, sketch.places))

    def parts(self) -> dict[str, Any]:
        """Nodes, edges and RDKit's drawing."""
        sketch = self.sketch
        return {
            "nodes": [
                Node(label=sketch.label(node), x=round(float(x), 3), y=round(float(y), 3))
                for node, (x, y) in enumerate(sketch.places)
            ],
            "edges": [
                Edge(first=int(i), second=int(j), order=order)
                for (i, j), order in zip(sketch.edges, sketch.orders, strict=True)
            ],
            "picture": None if self.lines is None else _picture(self.lines),
        }


def _picture(lines: LineDrawing) -> Picture:
    return Picture(
        strokes=[Stroke(path=one.path, filled=one.filled, width=one.width) for one in lines.strokes],
        origin=lines.origin,
        unit=lines.unit,
    )


@lru_cache(maxsize=128)
def read_graph(text: str) -> Drawn:
    """The graph of a SMILES string or the example of that name, if it is not too large."""
    name = text.strip()
    if name in EXAMPLES:
        return Drawn(EXAMPLES[name].sketch())
    return Drawn.molecule(read_molecule(name))


def read_molecule(smiles: str) -> Any:
    """The molecule of a SMILES string, if it is not too large."""
    mol = parse(smiles)
    if mol.GetNumAtoms() > MAX_ATOMS:
        raise UserError(f"the molecule has {mol.GetNumAtoms()} atoms; at most {MAX_ATOMS} are shown here")
    return mol


def drawn_smiles(smiles: str, fragments: Fragments) -> Drawn:
    """A molecule, as far as a model looks at it."""
    return Drawn.molecule(parse(smiles, fragments=fragments))
