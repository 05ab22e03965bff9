import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from lspe.data import smiles_to_data
from lspe.data.benchmarks.zinc import FEATURES as ZINC
from lspe.data.errors import MoleculeError
from lspe.data.molecules.conversion import smiles_to_graphs, to_packed
from lspe.data.molecules.smiles import (
    atom_types,
    from_kekule_smiles,
    kekule_arrays,
    kekule_form,
    ogb_arrays,
    parse,
    read_smiles,
)
from lspe.features import OGB_ATOM_TABLE, OGB_BOND_TABLE, CategoricalFeatures, OGBFeatures

OGB = OGBFeatures()
MOLECULES = [
    "C", "[Na+].[Cl-]", "CCO", "c1ccccc1", "C[C@H](N)C(=O)O", "F/C=C/F", r"F/C=C\F", "C/C=C/C=C",
    "[13CH4]", "[Fe+2]", "[C-]#[O+]", "[CH3]", "[2H]O[2H]", "*CC*", "C1CC2CCC1C2", "O=S(=O)(O)O", "FS(F)(F)(F)(F)F",
    "[U]", "N#N", "[H][H]", "[NH4+]", "C[N+](C)(C)C", "[O-][Cl+3]([O-])([O-])[O-]", "c1ccc2[nH]ccc2c1",
    "OC1C2C1CC2", "[B-](F)(F)(F)F", "[cH-]1cccc1.[cH-]1cccc1.[Fe+2]", "[NH3+][Pt-2]([NH3+])(Cl)Cl",
    "N->[Cu+2]", "C1=CC=CC=C1",
    "O1C=C[C@H]([C@H]1O2)c3c2cc(OC)c4c3OC(=O)C5=C4CCC(=O)5",
]  # fmt: skip


@pytest.fixture(scope="module")
def smiles2graph() -> object:
    """OGB's own function. Its import asks the network for a newer version unless it cannot."""
    import sys
    import types

    stand_in = types.ModuleType("outdated")
    stand_in.check_outdated = lambda *_: (False, "")  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "outdated", stand_in)
        from ogb.utils import smiles2graph

        return smiles2graph


def same_as_ogb(smiles: str, smiles2graph: object) -> None:
    theirs = smiles2graph(smiles)  # type: ignore[operator]
    ours = to_packed(ogb_arrays([parse(smiles)]))[0]
    np.testing.assert_array_equal(ours.x, theirs["node_feat"])
    order = np.lexsort(theirs["edge_index"])
    np.testing.assert_array_equal(ours.edge_index, theirs["edge_index"][:, order])
    np.testing.assert_array_equal(ours.edge_attr, theirs["edge_feat"][order])


@pytest.mark.parametrize("smiles", MOLECULES)
def test_features_are_ogbs(smiles: str, smiles2graph: object) -> None:
    same_as_ogb(smiles, smiles2graph)


def test_features_of_real_molecules_are_ogbs(smiles2graph: object) -> None:
    from rdkit import RDConfig

    lines = Path(RDConfig.RDDataDir, "NCI", "first_200.props.sdf")
    suppliers = Chem.SDMolSupplier(str(lines))
    smiles = [Chem.MolToSmiles(mol) for mol in suppliers if mol is not None]
    assert len(smiles) > 150
    for one in smiles:
        same_as_ogb(one, smiles2graph)


def test_tables_have_ogbs_sizes(smiles2graph: object) -> None:
    from ogb.utils.features import get_atom_feature_dims, get_bond_feature_dims

    assert list(OGB_ATOM_TABLE) == get_atom_feature_dims()
    assert list(OGB_BOND_TABLE) == get_bond_feature_dims()


def test_features_of_moltox21_are_the_benchmarks(shared_data: Path) -> None:
    import pandas as pd

    smiles = pd.read_csv(shared_data / "tox21.csv.gz")["smiles"][:400]
    with np.load(shared_data / "tox21_graphs.npz") as file:
        expected_nodes, expected_x = file["num_nodes"][:400], file["node_feat"]
    read = read_smiles(smiles.tolist(), OGB)
    assert len(read.reasons) == 0
    np.testing.assert_array_equal(read.arrays.num_nodes, expected_nodes)
    same = read.arrays.x == expected_x[: len(read.arrays.x)]
    assert same.mean() > 0.999  # perception of aromaticity has changed a little since


def test_zincs_types_and_bonds_come_from_the_kekule_form() -> None:
    arrays = kekule_arrays([from_kekule_smiles("C[NH+](C)CC1=CC=CS1")], ZINC)
    names = [ZINC.vocabulary[number] for number in arrays.x]
    assert names == ["C", "N H1 +", "C", "C", "C", "C", "C", "C", "S"]
    assert arrays.edge_attr.tolist() == [1, 1, 1, 1, 2, 1, 2, 1, 1]


@settings(max_examples=40, deadline=None)
@given(
    smiles=st.sampled_from(["CCO", "c1ccccc1C(=O)[O-]", "C[C@H](N)C(=O)O", "c1ccc2[nH]ccc2c1", "O=[N+]([O-])c1ccccc1"]),
    seed=st.integers(0, 999),
)
def test_the_kekule_form_keeps_the_order_of_the_atoms(smiles: str, seed: int) -> None:
    mol = Chem.MolFromSmiles(smiles)
    order = np.random.default_rng(seed).permutation(mol.GetNumAtoms()).tolist()
    mol = Chem.RenumberAtoms(mol, order)
    kekule = kekule_form(mol)
    assert [atom.GetSymbol() for atom in kekule.GetAtoms()] == [atom.GetSymbol() for atom in mol.GetAtoms()]
    bonded = {frozenset((b.GetBeginAtomIdx(), b.GetEndAtomIdx())) for b in mol.GetBonds()}
    assert bonded == {frozenset((b.GetBeginAtomIdx(), b.GetEndAtomIdx())) for b in kekule.GetBonds()}
    assert not any(bond.GetIsAromatic() for bond in kekule.GetBonds())


def test_names_of_atom_types() -> None:
    assert atom_types(from_kekule_smiles("[NH2+]=C[O-]")) == ["N H2 +", "C", "O -"]
    assert atom_types(from_kekule_smiles("[Fe+2]")) == ["Fe +2"]
    assert atom_types(from_kekule_smiles("F[C@@H](Cl)Br")) == ["F", "C H1", "Cl", "Br"]


def test_what_a_vocabulary_lacks_is_its_own_entry_or_an_error() -> None:
    open_ended = CategoricalFeatures(node_types=3, edge_types=5, vocabulary=("C", "O"), unknown=True)
    molecules = smiles_to_graphs(["CO", "CN", "[NH3]->[Cu]"], open_ended)
    assert molecules.graphs[1].x.tolist() == [0, 2]
    assert molecules.graphs[2].edge_attr.tolist() == [4, 4]
    closed = CategoricalFeatures(node_types=2, edge_types=4, vocabulary=("C", "O"))
    molecules = smiles_to_graphs(["CN", "CO", "C->O"], closed)
    assert molecules.rows.tolist() == [1]
    assert "has N, which the vocabulary does not know" in molecules.reasons[0]
    assert "a bond that is not single" in molecules.reasons[2]


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("", "is no SMILES"),
        ("   ", "is no SMILES"),
        ("hello", "is not a SMILES string"),
        ("CCO>>CC=O", "is a reaction, not a molecule"),
        ("CCO>[Pd]>CC=O", "is a reaction, not a molecule"),
        ("C1CC", "is not a SMILES string"),
        ("CCO ethanol", "has something behind the SMILES CCO"),
        ("C(C)(C)(C)(C)C", "Explicit valence for atom # 0 C, 5"),
        ("c1cccc1", "Can't kekulize"),
        ("C|C", "is not a SMILES string"),
        ("ÖCC", "has the character 'Ö'"),
        ("CСС", "has the character 'С'"),  # Cyrillic
        ("CC\u200b", "has the character"),
        ("C\tC", "has something behind the SMILES C"),
    ],
)
def test_a_bad_smiles_says_what_is_wrong(smiles: str, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MoleculeError) as caught:
        parse(smiles)
    assert reason in caught.value.reason
    assert capfd.readouterr().err == ""


def test_fragments_are_kept_cut_or_refused() -> None:
    salt = "CC(=O)[O-].[Na+]"
    assert parse(salt).GetNumAtoms() == 5
    assert Chem.MolToSmiles(parse(salt, fragments="largest")) == "CC(=O)[O-]"
    with pytest.raises(MoleculeError, match="has 2 fragments"):
        parse(salt, fragments="error")
    assert Chem.MolToSmiles(parse("CCO", fragments="error")) == "CCO"
    assert Chem.MolToSmiles(parse("CCC.CCCl", fragments="largest")) == "CCCl"  # as many atoms, but heavier


def test_processes_give_what_one_gives() -> None:
    smiles = [*MOLECULES, "broken", ""] * 40
    alone = smiles_to_graphs(smiles, OGB, processes=1)
    together = smiles_to_graphs(smiles, OGB, processes=2)
    assert alone.reasons == together.reasons
    assert len(alone.reasons) == 80
    np.testing.assert_array_equal(alone.rows, together.rows)
    np.testing.assert_array_equal(alone.graphs.node["x"], together.graphs.node["x"])
    np.testing.assert_array_equal(alone.graphs.target, together.graphs.target)
    assert len(alone.graphs) == len(alone.rows)
    assert int(alone.graphs.num_nodes[len(MOLECULES)]) == 1  # the first molecule again, after two that are none


def test_no_molecules_give_no_graphs() -> None:
    molecules = smiles_to_graphs(["", "broken"], OGB)
    assert len(molecules.graphs) == 0
    assert sorted(molecules.reasons) == [0, 1]
    assert len(smiles_to_graphs([], OGB).graphs) == 0


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = tmp_path / "script.py"
    script.write_text(
        "print('started')\n"
        "from lspe.data import smiles_to_graphs\n"
        "molecules = smiles_to_graphs(['CCO'] * 3000, processes=2)\n"
        "print(len(molecules.graphs))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env={**os.environ}, check=True)
    assert done.stdout == "started\n3000\n"


def test_one_molecule_as_data(smiles2graph) -> None:
    data, expected = smiles_to_data("c1ccccc1O"), smiles2graph("c1ccccc1O")
    assert data.x.tolist() == expected["node_feat"].tolist()
    assert sorted(map(tuple, data.edge_index.T.tolist())) == sorted(map(tuple, expected["edge_index"].T.tolist()))
    with pytest.raises(MoleculeError, match="C1CC"):
        smiles_to_data("C1CC")
