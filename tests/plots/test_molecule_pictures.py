"""Molecules as RDKit draws them: rings apart, stereo kept, and atoms where the page puts its discs."""

import re

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.EnumerateStereoisomers import EnumerateStereoisomers, StereoEnumerationOptions

from lspe.data.benchmarks.nci import source_file
from lspe.plots.molecule_pictures import line_drawing, molecule_svg, placed
from lspe.plots.places import _crossings, _faults, bonds_of, molecule_places

STRYCHNINE = "O=C1C[C@@H]2OCC=C3CN4CC[C@]56[C@@H]4C[C@H]3[C@@H]2[C@@H]5N1c1ccccc16"
CAMPHOR = "CC1(C)C2CCC1(C)C(=O)C2"
PACLITAXEL = (
    "CC1=C2[C@@]([C@]([C@H]([C@@H]3[C@]4([C@H](OC4)C[C@@H]([C@]3(C(=O)[C@@H]2OC(=O)C)C)O)OC(=O)C)OC(=O)c5ccccc5)"
    "(C[C@@H]1OC(=O)[C@H](O)[C@@H](NC(=O)c6ccccc6)c7ccccc7)O)(C)C"
)
HELICENE = "c1ccc2c(c1)ccc1ccc3ccc4ccc5ccccc5c4c3c12"


def test_rings_that_one_layout_lets_overlap_are_drawn_apart() -> None:
    from rdkit.Chem import rdDepictor

    faults_of_plain = []
    for mol in map(Chem.MolFromSmiles, [STRYCHNINE, CAMPHOR, PACLITAXEL, HELICENE]):
        plain = Chem.Mol(mol)
        rdDepictor.Compute2DCoords(plain, canonOrient=True)
        bonds = bonds_of(mol)
        faults_of_plain.append(_faults(plain.GetConformer().GetPositions()[:, :2] / 1.5, bonds))
        assert _faults(molecule_places(mol), bonds) <= 1  # camphor's bridge comes near an atom
        assert _crossings(molecule_places(mol), bonds) == 0
    assert sum(faults > 1 for faults in faults_of_plain) >= 3  # RDKit 2024.03 lays strychnine out well


def test_crossings_are_counted() -> None:
    square = np.array([[0, 0], [1, 1], [0, 1], [1, 0]], dtype=float)
    assert _crossings(square, np.array([[0, 1], [2, 3]])) == 1
    assert _crossings(square, np.array([[0, 2], [1, 3]])) == 0
    assert _crossings(square, np.array([[0, 1], [1, 2]])) == 0
    assert _crossings(square, np.zeros((0, 2), dtype=np.int64)) == 0


def test_what_is_drawn_has_the_stereo_of_the_molecule() -> None:
    several = ["N[C@@H](C)C(=O)O", "F/C=C/F", "F/C=C\\F", "C/C=C\\[C@H](O)F", STRYCHNINE, PACLITAXEL]
    several += [line.split("\t")[0] for line in source_file().read_text().splitlines()[:200]]
    one_isomer = StereoEnumerationOptions(maxIsomers=1, rand=0)
    for mol in filter(None, map(Chem.MolFromSmiles, several)):
        isomer = Chem.MolFromSmiles(Chem.MolToSmiles(next(iter(EnumerateStereoisomers(mol, one_isomer)))))
        drawn = Chem.MolFromMolBlock(Chem.MolToMolBlock(placed(isomer)))
        assert Chem.MolToSmiles(drawn) == Chem.MolToSmiles(isomer)


def test_wedges_letters_and_lines_are_told_apart() -> None:
    def kinds(smiles: str) -> tuple[int, int]:
        mol = Chem.MolFromSmiles(smiles)
        strokes = line_drawing(mol, molecule_places(mol)).strokes
        return sum(one.filled for one in strokes), sum(not one.filled for one in strokes)

    assert kinds("CC") == (0, 1)
    letters, lines = kinds("C[C@H](F)Cl")
    flat_letters, flat_lines = kinds("CC(F)Cl")
    assert (letters, lines) != (flat_letters, flat_lines)
    assert flat_letters >= 3  # F, C, l


@pytest.mark.parametrize("smiles", ["CCO", "[Na+].[Cl-]", "C", "c1ccccc1C(=O)O"])
def test_lines_end_where_the_atoms_are(smiles: str) -> None:
    mol = Chem.MolFromSmiles(smiles)
    places = molecule_places(mol)
    drawing = line_drawing(mol, places)
    expected = np.array(drawing.origin) + drawing.unit * places * [1, -1]
    for atom in mol.GetAtoms():
        numbers = [re.findall(r"-?[\d.]+", one.path) for one in drawing.strokes]
        points = np.concatenate([np.array(one, dtype=float).reshape(-1, 2) for one in numbers])
        distance = np.linalg.norm(points - expected[atom.GetIdx()], axis=1).min()
        assert distance < drawing.unit * 0.3


def test_the_picture_of_a_page_is_one_element() -> None:
    svg = molecule_svg(Chem.MolFromSmiles("CCO"))
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")
