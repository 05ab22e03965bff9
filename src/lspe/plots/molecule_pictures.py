"""Molecules as RDKit draws them."""

from __future__ import annotations

from typing import Any


def molecule_svg(mol: Any, width: int = 260, height: int = 200) -> str:
    """An SVG element, without the XML declaration, for a page."""
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer: Any = rdMolDraw2D.MolDraw2DSVG(width, height)
    drawer.drawOptions().clearBackground = False
    rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol)
    drawer.FinishDrawing()
    text = str(drawer.GetDrawingText())
    return text[text.index("<svg") :]
