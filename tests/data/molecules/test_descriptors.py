"""Numbers of molecules as a whole: the same in every process, and never a crash."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors

from lspe.data.molecules.descriptors import RDKIT_NAMES, describe
from lspe.data.words import DESCRIPTOR_WIDTH

ODD = ["[Na+].[Cl-]", "[U]", "[H][H]", "[Fe+2].c1cc[cH-]c1", "C" * 300, "*C", "B(O)O"]


def test_values_are_rdkits() -> None:
    mol = Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")
    [row] = describe(["CC(=O)Oc1ccccc1C(=O)O"], "rdkit")
    assert len(row) == len(RDKIT_NAMES) == DESCRIPTOR_WIDTH["rdkit"]
    for name in ("MolWt", "TPSA", "MolLogP", "RingCount", "fr_ester"):
        assert row[RDKIT_NAMES.index(name)] == pytest.approx(dict(Descriptors.descList)[name](mol), rel=1e-6)


def test_odd_molecules_have_numbers_or_nan() -> None:
    values = describe(ODD, "rdkit")
    assert values.shape == (len(ODD), DESCRIPTOR_WIDTH["rdkit"])
    assert not np.isinf(values).any()
    assert np.nanmax(np.abs(values)) <= 1e6
    assert np.isfinite(values[:, RDKIT_NAMES.index("MolWt")]).all()


def test_fingerprints_count_environments() -> None:
    hexane, again, phenol = describe(["CCCCCC", "C(CCCC)C", "c1ccccc1O"], "morgan")
    assert (hexane == again).all()
    assert hexane.sum() == 6 + 6 + 4  # radius 0, 1, and those of radius 2 that are no repetition
    assert (hexane != phenol).any()


def test_processes_give_the_same() -> None:
    smiles = ["C" * n for n in range(1, 120)]
    np.testing.assert_array_equal(describe(smiles, "morgan", processes=2), describe(smiles, "morgan", processes=1))


def test_the_largest_fragment_is_described_where_it_is_kept() -> None:
    salt = describe(["CC(=O)[O-].[Na+]"], "rdkit", fragments="largest")
    np.testing.assert_array_equal(salt, describe(["CC(=O)[O-]"], "rdkit"))
    assert describe([], "rdkit").shape == (0, DESCRIPTOR_WIDTH["rdkit"])
