"""Molecules as RDKit draws them, with wedges, charges and hydrogens, where :mod:`lspe.plots.places` puts its atoms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from lspe.plots.places import Places, molecule_places

_BOND = 1.5
_SCALE = 40.0


@dataclass(frozen=True)
class Stroke:
    """An SVG path: the outline of a letter or wedge that is ``filled``, else a line of this ``width``."""

    path: str
    filled: bool
    width: float


@dataclass(frozen=True)
class LineDrawing:
    """What RDKit draws in one colour; the place [x, y] of a sketch is at ``origin`` + ``unit`` · [x, −y]."""

    strokes: tuple[Stroke, ...]
    origin: tuple[float, float]
    unit: float


def line_drawing(mol: Any, places: Places) -> LineDrawing:
    """The lines of a molecule whose atoms are at `places`."""
    from rdkit.Chem.Draw import rdMolDraw2D
    from rdkit.Geometry import Point2D

    drawer: Any = rdMolDraw2D.MolDraw2DSVG(-1, -1)  # as large as it has to be
    options = drawer.drawOptions()
    options.clearBackground = False
    options.useBWAtomPalette()
    options.scalingFactor = _SCALE
    options.bondLineWidth = 2.5
    rdMolDraw2D.PrepareAndDrawMolecule(drawer, placed(mol, places))
    zero, one = (drawer.GetDrawCoords(Point2D(x, 0)) for x in (0, _BOND))
    drawer.FinishDrawing()
    return LineDrawing(tuple(_strokes(drawer.GetDrawingText())), (zero.x, zero.y), one.x - zero.x)


def placed(mol: Any, places: Places | None = None) -> Any:
    """A copy with its atoms at `places`, in the plane."""
    from rdkit import Chem

    mol = Chem.Mol(mol)
    mol.RemoveAllConformers()
    conformer = Chem.Conformer(mol.GetNumAtoms())
    conformer.Set3D(False)
    for atom, (x, y) in enumerate((molecule_places(mol) if places is None else places).tolist()):
        conformer.SetAtomPosition(atom, (_BOND * x, _BOND * y, 0.0))
    mol.AddConformer(conformer)
    return mol


def molecule_svg(mol: Any, width: int = 260, height: int = 200) -> str:
    """An SVG element, without the XML declaration, for a page."""
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer: Any = rdMolDraw2D.MolDraw2DSVG(width, height)
    drawer.drawOptions().clearBackground = False
    rdMolDraw2D.PrepareAndDrawMolecule(drawer, placed(mol))
    drawer.FinishDrawing()
    text = str(drawer.GetDrawingText())
    return text[text.index("<svg") :]


def _strokes(svg: str) -> Iterator[Stroke]:
    for path in ElementTree.fromstring(svg.partition("?>")[2]).iter("{http://www.w3.org/2000/svg}path"):
        style = path.get("style", "")
        filled = (path.get("fill") or _of(style, "fill") or "none") != "none"
        yield Stroke(path.attrib["d"], filled, float((_of(style, "stroke-width") or "0").removesuffix("px")))


def _of(style: str, name: str) -> str | None:
    found = re.search(rf"(?:^|;){name}:([^;]*)", style)
    return found and found[1]
