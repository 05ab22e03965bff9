"""Properties read out of RDKit's binary form are those that RDKit gives when it is asked."""

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem, RDConfig, rdBase

from lspe.data.molecules import binary
from lspe.data.molecules.binary import properties_of, read_forms
from lspe.data.molecules.properties import Properties, ask
from tests.data.molecules.test_smiles import MOLECULES

KNOWN = [
    *MOLECULES[:12], "[13CH4]", "[OH3+]", "[Fe-4]", "OO[O]", "C=[N+]=[N-]", "[Og]", "C" * 254, "F[P@TB1](C)(N)(O)S",
    "[Pt@SP1](F)(Cl)(Br)I", "C[C@H](F)Cl |o1:1|", "CC |(0,0,;1,0,)|", "C1=CC=CC=CC=C1", "[#6]",
    "C" * 90 + r"/C=C\C" + "C" * 90,
]  # fmt: skip
UNKNOWN = ["*", "[CH3:7]C", "[CH3:200]C", "C" * 255, "C" * 1000, "C~C"]


def molecules(smiles: list[str]) -> list[Chem.Mol]:
    with rdBase.BlockLogs():
        return [Chem.MolFromSmiles(one) for one in smiles]


def forms(mols: list[Chem.Mol]) -> list[bytes]:
    return [mol.ToBinary(0) for mol in mols]


def assert_same(found: Properties, expected: Properties) -> None:
    for name in ("num_nodes", "num_bonds", "atoms", "bonds"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).dtype == getattr(expected, name).dtype


@pytest.fixture
def form_is_known() -> None:
    if not read_forms(forms(molecules(["CCO"])))[0].all():
        pytest.skip(f"RDKit {rdBase.rdkitVersion} writes another form")


@pytest.mark.usefixtures("form_is_known")
def test_known_forms_are_read() -> None:
    mols = molecules(KNOWN)
    known, found = read_forms(forms(mols))
    assert known.all()
    assert_same(found, ask(mols))


@pytest.mark.usefixtures("form_is_known")
def test_unknown_forms_are_said_to_be() -> None:
    known, found = read_forms(forms(molecules([*UNKNOWN, "CCO"])))
    assert known.tolist() == [False] * len(UNKNOWN) + [True]
    assert_same(found, ask(molecules(["CCO"])))


@pytest.mark.parametrize("seed", range(5))
def test_known_and_unknown_forms_keep_their_order(seed: int) -> None:
    smiles = np.random.default_rng(seed).permutation([*MOLECULES, *KNOWN, *UNKNOWN]).tolist()
    mols = molecules(smiles)
    assert_same(properties_of(mols), ask(mols))


def test_real_molecules() -> None:
    lines = Path(RDConfig.RDDataDir, "NCI", "first_5K.smi").read_text().splitlines()
    mols = [mol for mol in molecules([line.split()[0] for line in lines[:2000]]) if mol is not None]
    assert len(mols) > 1900
    assert_same(properties_of(mols), ask(mols))


def test_another_version_of_the_form_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    mols = molecules(MOLECULES)
    monkeypatch.setattr(binary, "_HEADER", binary._HEADER[::-1])
    assert not read_forms(forms(mols))[0].any()
    assert_same(properties_of(mols), ask(mols))


def test_no_molecules() -> None:
    known, found = read_forms([])
    assert known.size == 0
    assert_same(found, ask([]))
