"""Explained predictions as pictures: atoms and bonds in the colour of what they add, drawn by RDKit."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from lspe.data.molecules.smiles import parse
from lspe.data.words import Fragments
from lspe.errors import UserError
from lspe.files import check_picture, make_folder
from lspe.files.html import figure, paragraphs, side_by_side, write_page
from lspe.plots.molecule_pictures import placed
from lspe.plots.style import OKABE_ITO
from lspe.predict.explanation import Explanation, write_explanations
from lspe.predict.predictions import Floats
from lspe.predict.predictor import Predictor

INDEX = "index.html"
MOST = 1000
"""Molecules in one folder: a picture and about half a second each."""

_RAISES, _LOWERS = OKABE_ITO[4], OKABE_ITO[0]
_OF_FILES = (".html", ".svg", ".png", ".pdf", ".csv", ".tsv", ".parquet")
_SIZE = (560, 440)
_TEXT = 0.05
"""Contributions below this part of the largest one are left white."""
_WHAT_IS_SHOWN = (
    "Atoms and bonds in vermilion raise the prediction, those in blue lower it; the deeper, the more. All numbers are "
    "in contributions.csv, more of the nearest training molecules in neighbours.csv."
)


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
    """A folder that fills with explained molecules: pictures, a page that shows them, and two tables.

    >>> folder = ExplanationFolder(model, Path("why"))
    >>> folder.add(1, "CCO")
    >>> folder.finish()
    """

    def __init__(self, predictor: Predictor, path: Path, form: str = "svg") -> None:
        predictor.check_level("graph", "explained is")
        if path.suffix.lower() in _OF_FILES:
            raise UserError(f"{path}: explanations are a folder of pictures and tables; name it without {path.suffix}")
        make_folder(path)
        check_picture(path / f"1.{form}")
        self.predictor = predictor
        self.path = path
        self.form = form
        self.explanations: list[Explanation] = []
        self.figures: list[str] = []

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
            file = f"{name}.{self.form}"
            (self.path / file).write_bytes(picture)
            image = f'<a href="{file}"><img loading="lazy" alt="{escape(smiles)}" src="{file}"></a>'
            said = f"row {row}: {smiles}, {one.outputs[output]} {one.value[output]:.3g}"
            self.figures.append(figure(image, said + _nearest(one, self.predictor.task_names)))

    def finish(self) -> str:
        """Write the page and the tables; what was written, in words."""
        if not self.explanations:
            return "nothing was explained"
        write_explanations(self.explanations, self.predictor.task_names, self.path)
        parts = [*paragraphs([_WHAT_IS_SHOWN]), side_by_side(self.figures)]
        write_page(self.path / INDEX, f"Why {', '.join(self.predictor.task_names)}?", parts)
        several = f"{len(self.explanations)} molecules" if len(self.explanations) > 1 else "one molecule"
        text = f"explained {several}: {self.path / INDEX}"
        if self.predictor.forests:
            share = self.predictor.weights[len(self.predictor.members) :].sum()
            text += (
                f" (atoms and bonds are the networks' part, {1 - share:.0%}; the forest's {share:.0%} is one number)"
            )
        return text


def _nearest(explanation: Explanation, task_names: tuple[str, ...]) -> str:
    """The training molecule that is most like it, with what is known of it."""
    if not explanation.neighbours:
        return ""
    nearest = explanation.neighbours[0]
    known = [
        f", {name} {label:.4g}" if isinstance(label, float) else f", {name} {label}"
        for name, label in zip(task_names, nearest.labels, strict=True)
        if label is not None
    ]
    return f"; nearest in training: {nearest.smiles}{''.join(known)} (Tanimoto {nearest.tanimoto:.2f})"


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
