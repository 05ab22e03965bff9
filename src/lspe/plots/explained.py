"""Explained predictions as pictures: atoms and bonds in the colour of what they add, drawn by RDKit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lspe.data.molecules.smiles import parse
from lspe.data.words import Fragments
from lspe.errors import UserError
from lspe.files import check_picture, make_folder
from lspe.plots.molecule_pictures import placed
from lspe.plots.style import OKABE_ITO
from lspe.predict.explanation import Explanation, write_explanations
from lspe.predict.predictions import Floats
from lspe.predict.predictor import Predictor

MOST = 1000
"""Molecules in one folder: a picture and about half a second each."""

_RAISES, _LOWERS = OKABE_ITO[4], OKABE_ITO[0]
_SIZE = (560, 440)
_TEXT = 0.05
"""Contributions below this part of the largest one are left white."""


def draw_explanation(explanation: Explanation, output: int = 0, *, fragments: Fragments = "keep", form: str) -> bytes:
    """A molecule as ``svg`` or ``png``: vermilion raises the output with this number, blue lowers it.

    The depth of a colour is relative to the largest contribution of an atom or bond, which the legend names.
    """
    from rdkit.Chem.Draw import rdMolDraw2D

    mol = placed(parse(explanation.smiles, fragments=fragments))
    atoms, bonds = explanation.atoms[:, output], explanation.bonds[:, output]
    largest = float(np.abs(np.concatenate([atoms, bonds])).max())
    of_atoms, of_bonds = _colours(atoms, largest), _colours(bonds, largest)
    drawer: Any = (rdMolDraw2D.MolDraw2DSVG if form == "svg" else rdMolDraw2D.MolDraw2DCairo)(*_SIZE)
    options = drawer.drawOptions()
    options.useBWAtomPalette()
    options.legendFontSize = 18
    options.highlightBondWidthMultiplier = 14
    rdMolDraw2D.PrepareAndDrawMolecule(
        drawer,
        mol,
        legend=_legend(explanation, output, largest),
        highlightAtoms=list(of_atoms),
        highlightAtomColors=of_atoms,
        highlightAtomRadii=dict.fromkeys(of_atoms, 0.4),
        highlightBonds=list(of_bonds),
        highlightBondColors=of_bonds,
    )
    drawer.FinishDrawing()
    picture = drawer.GetDrawingText()
    return picture.encode() if isinstance(picture, str) else bytes(picture)


def _colours(values: Floats, largest: float) -> dict[int, tuple[float, float, float]]:
    """White for nothing, the full colour for the largest contribution."""
    from matplotlib.colors import to_rgb

    colours = {}
    for number, value in enumerate(values.tolist()):
        strength = abs(value) / largest if largest else 0.0
        if strength >= _TEXT:
            full = to_rgb(_RAISES if value > 0 else _LOWERS)
            red, green, blue = (1 - strength * 0.85 * (1 - channel) for channel in full)
            colours[number] = (red, green, blue)
    return colours


def _legend(explanation: Explanation, output: int, largest: float) -> str:
    parts = {name: value[output] for name, value in explanation.parts().items() if name not in ("baseline", "rest")}
    shown = "".join(f" {value:+.3g} {name}" for name, value in parts.items() if value)
    first = f"{explanation.outputs[output]} {explanation.value[output]:.3g}, strongest colour {largest:.2g}"
    return f"{first}\n= {explanation.baseline[output]:.3g} baseline{shown}"


class ExplanationFolder:
    """A folder that fills with explained molecules: a picture of each, contributions.csv and neighbours.csv.

    >>> folder = ExplanationFolder(model, Path("why"))
    >>> folder.add(1, "CCO")
    >>> folder.finish()
    """

    def __init__(self, predictor: Predictor, path: Path, form: str = "svg") -> None:
        predictor.check_level("graph", "explained is")
        make_folder(path)
        check_picture(path / f"1.{form}")
        self.predictor = predictor
        self.path = path
        self.form = form
        self.explanations: list[Explanation] = []

    def add(self, row: int, smiles: str, extra: Floats | None = None) -> None:
        """Explain and draw the molecule of a row."""
        if len(self.explanations) == MOST:
            raise UserError(f"more than {MOST:,} molecules to explain: choose the rows that matter")
        one = self.predictor.explain(smiles, extra=extra)
        self.explanations.append(one)
        shown = [int(one.value.argmax())] if self.predictor.task == "multiclass" else range(len(one.outputs))
        for output in shown:
            name = f"{row}" if len(shown) == 1 else f"{row}-{_safe(self.predictor.task_names[output])}"
            picture = draw_explanation(one, output, fragments=self.predictor.fragments, form=self.form)
            (self.path / f"{name}.{self.form}").write_bytes(picture)

    def finish(self) -> str:
        """Write the tables; what was written, in words."""
        if not self.explanations:
            return "nothing was explained"
        write_explanations(self.explanations, self.predictor.task_names, self.path)
        several = f"{len(self.explanations)} molecules" if len(self.explanations) > 1 else "one molecule"
        text = f"explained {several}: {self.path}"
        if self.predictor.forests:
            share = self.predictor.weights[len(self.predictor.members) :].sum()
            text += (
                f" (atoms and bonds are the networks' part, {1 - share:.0%}; the forest's {share:.0%} is one number)"
            )
        return text


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
