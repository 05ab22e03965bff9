"""SD files: a row per molecule, a column per data item."""

import gzip
from pathlib import Path

import pytest
from rdkit import Chem

from lspe.data import DataError, iter_table_chunks, read_table
from lspe.data.packed.sets import PackedGraphs

MOLECULES = ["CCO", "c1ccccc1O", "C[C@H](N)C(=O)O", "CC(=O)[O-].[Na+]"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    writer = Chem.SDWriter(str(tmp_path / "some.sdf"))
    for number, smiles in enumerate(MOLECULES * 6):
        mol = Chem.MolFromSmiles(smiles)
        mol.SetProp("_Name", f"molecule {number}")
        mol.SetDoubleProp("logS", number / 2)
        if number % 2:
            mol.SetProp("remark", "two\nlines")
        writer.write(mol)
    writer.close()
    return tmp_path / "some.sdf"


def test_molecules_names_and_items_are_rows(path: Path) -> None:
    [chunk] = iter_table_chunks(path)
    assert chunk.columns == ("smiles", "name", "logS", "remark")
    assert [Chem.CanonSmiles(one) for one in chunk.column("smiles")] == [Chem.CanonSmiles(s) for s in MOLECULES * 6]
    assert chunk.column("name")[3] == "molecule 3"
    assert chunk.column("remark")[:2] == ["", "two lines"]
    assert chunk.numbers[:2] == [1, 2]


@pytest.mark.parametrize("zipped", [False, True])
def test_it_is_learned_from_like_a_table(path: Path, zipped: bool) -> None:
    if zipped:
        whole = path.read_bytes()
        path = path.with_suffix(".sdf.gz")
        path.write_bytes(gzip.compress(whole))
    data = read_table(path, targets="logS").to_graphs()
    assert isinstance(data.graphs, PackedGraphs)
    assert data.graphs.y[:, 0].tolist() == [number / 2 for number in range(24)]
    assert data.molecule_names is not None
    assert data.molecule_names[5] == "molecule 5"


def test_what_rdkit_cannot_read_is_a_bad_row(path: Path) -> None:
    text = path.read_text().replace(" C   0", " Qq  0", 1)
    path.write_text(text)
    with pytest.raises(DataError, match=r"row 1, column 'smiles': '' is no SMILES.*--on-invalid skip"):
        read_table(path, targets="logS").to_graphs()
    data = read_table(path, targets="logS", on_invalid="skip").to_graphs()
    assert len(data.graphs) == 23


def test_a_file_that_was_cut_off_is_refused(path: Path) -> None:
    path.write_text(path.read_text().partition("M  END")[0])
    with pytest.raises(DataError, match=r"the molecule 'molecule 0' of the SD file has no 'M  END' line"):
        read_table(path, targets="logS")
