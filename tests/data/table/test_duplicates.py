from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from lspe.data import iter_table_chunks, smiles_to_graphs
from lspe.data.molecules.smiles import canonical
from lspe.data.table.duplicates import find_duplicates, fingerprints
from lspe.features import OGBFeatures

OGB = OGBFeatures()
MOLECULES = [
    *("C", "[Na+].[Cl-]", "c1ccccc1C(=O)O", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/F", "[13CH4]"),
    *("C1CC2CCC1C2", "c1ccc2[nH]ccc2c1", "O=S(=O)(O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "C1=CC=CC=C1C(O)=O"),
]


@settings(max_examples=40, deadline=None)
@given(number=st.integers(0, len(MOLECULES) - 1), seed=st.integers(1, 10**6))
def test_the_order_of_the_atoms_does_not_matter(number: int, seed: int) -> None:
    mol = Chem.MolFromSmiles(MOLECULES[number])
    spellings = Chem.MolToRandomSmilesVect(mol, 4, randomSeed=seed)
    codes = fingerprints(smiles_to_graphs([MOLECULES[number], *spellings], OGB).graphs)
    assert len(set(codes.tolist())) == 1


def brute_force(smiles: list[str]) -> list[tuple[int, int]]:
    first: dict[str, int] = {}
    pairs = [(number, first.setdefault(canonical(one), number)) for number, one in enumerate(smiles)]
    return [pair for pair in pairs if pair[0] != pair[1]]


def test_equal_codes_alone_do_not_make_a_duplicate() -> None:
    smiles = [*MOLECULES, "OC(=O)c1ccccc1", "C", "N[C@@H](C)C(O)=O", *("C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1")]
    codes = fingerprints(smiles_to_graphs(smiles, OGB).graphs)
    asked = []

    def ask(number: int) -> str:
        asked.append(number)
        return canonical(smiles[number])

    assert find_duplicates(codes, ask) == brute_force(smiles) == [(11, 2), (12, 2), (13, 0), (14, 3)]
    assert {0, 6} <= set(asked)  # methane and its isotope: the same code, another molecule
    assert 7 not in asked


@pytest.mark.parametrize("name", ["esol", "bbbp"])
def test_real_tables_have_the_duplicates_that_canonical_smiles_show(shared_data: Path, name: str) -> None:
    table = shared_data / "molnet" / f"{name}.csv.gz"
    smiles = [one for chunk in iter_table_chunks(table) for one in chunk.column("smiles")]
    molecules = smiles_to_graphs(smiles, OGB)
    readable = [smiles[row] for row in molecules.rows.tolist()]
    asked = []

    def ask(number: int) -> str:
        asked.append(number)
        return canonical(readable[number])

    found = find_duplicates(fingerprints(molecules.graphs), ask)
    assert found == brute_force(readable)
    assert len(found) > 10
    assert len(asked) < len(readable) / 4
