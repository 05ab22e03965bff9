"""No molecule ends the process that asked for it, and a bad one costs only itself."""

import pickle
import time

import numpy as np
import pytest
import rdkit

from lspe.data.errors import DataError, MoleculeError
from lspe.data.molecules import processes
from lspe.data.molecules.conversion import smiles_to_data, smiles_to_graphs
from lspe.data.molecules.descriptors import RDKIT_NAMES, describe
from lspe.data.molecules.limits import LONGEST, MOST_ATOMS, MOST_RINGS, SMALL
from lspe.data.molecules.processes import Refused, map_in_processes, why_not
from lspe.data.molecules.smiles import parse, scaffold
from tests.data.molecules.misbehaving import misbehave

quick_rdkit = pytest.mark.skipif(
    rdkit.__version__.startswith("2024.03"),
    reason="RDKit 2024.03 takes over 10 s for so large a molecule, which is refused then",
)


def ring(atoms: int) -> str:
    return f"C1{'C' * (atoms - 2)}C1"


def all_bonded(atoms: int) -> str:
    """Atoms that are all bonded to each other."""
    number = {(i, j): n for n, (i, j) in enumerate(((i, j) for i in range(atoms) for j in range(i + 2, atoms)), 1)}
    return "".join("*" + "".join(f"%({number[pair]})" for pair in number if atom in pair) for atom in range(atoms))


TOO_LARGE = {
    ring(20_000): "has 20,002 characters; at most 20,000 are read",
    "C" * 1_000_000: "has 1,000,000 characters; at most 20,000 are read",
    ring(MOST_ATOMS + 1): "has 5,001 atoms; molecules of at most 5,000 are read",
    "[U]" * 5_000 + "Br": "has 5,001 atoms",
    "C1CC1" * (MOST_RINGS + 1): "has 1,001 rings; molecules of at most 1,000 are read",
    all_bonded(55): "has 1,431 rings",
}


@pytest.mark.parametrize("smiles", TOO_LARGE, ids=TOO_LARGE.get)
def test_too_large_a_molecule_is_refused_at_once(smiles: str) -> None:
    started = time.process_time()
    with pytest.raises(MoleculeError) as caught:
        parse(smiles)
    assert time.process_time() - started < 0.5
    assert TOO_LARGE[smiles] in caught.value.reason
    assert len(str(caught.value)) < 300
    found = smiles_to_graphs(["C", smiles, "CC"])
    assert found.rows.tolist() == [0, 2]
    assert TOO_LARGE[smiles] in found.reasons[1]


@quick_rdkit
@pytest.mark.parametrize(
    "smiles", [ring(4_000), "C" * MOST_ATOMS, "C1CC1" * MOST_RINGS], ids=["ring", "chain", "rings"]
)
def test_what_is_within_the_limits_is_read(smiles: str) -> None:
    assert len(smiles) <= LONGEST
    assert smiles_to_data(smiles).num_nodes == smiles.count("C")


@pytest.mark.parametrize("number", [1, 2])
def test_a_large_molecule_costs_only_itself(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SECONDS", 3.0)
    large = "C" * SMALL
    pieces = [["C", f"{large}crash", "CC"], ["O"], [f"{large}hang", large]]
    first, second, third = map_in_processes(misbehave, pieces, processes=number)
    assert first == ["read", "is more than RDKit can stand: it ended the process that read it", "read"]
    assert second == ["read"]
    assert third == ["takes longer than 3 s to read", "read"]


def test_a_small_molecule_that_ends_a_process_of_many_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SECONDS", 3.0)
    monkeypatch.setattr(processes, "_SECONDS_OF_A_PIECE", 8.0)
    pieces = [["C", "CC"]] * 5 + [["C", "crash", "CC"]] + [["O"]] * 3 + [["hang", "O"]]
    results = list(map_in_processes(misbehave, pieces, processes=2))
    assert [len(one) for one in results] == [len(piece) for piece in pieces]
    bad = [(piece, row, why) for piece, one in enumerate(results) for row, why in enumerate(one) if why != "read"]
    assert [(piece, row) for piece, row, _ in bad] == [(5, 1), (9, 0)]
    assert "ended the process" in bad[0][2]
    assert "takes longer than 3 s" in bad[1][2]


def test_a_process_that_the_system_ends_says_nothing_of_a_molecule() -> None:
    with pytest.raises(DataError, match=r"a process that reads molecules was ended by the system.*--workers 1"):
        list(map_in_processes(misbehave, [["C"], ["kill"], ["C"]], processes=2))
    with pytest.raises(DataError, match=r"a process that reads molecules was ended by the system"):
        why_not(misbehave, "kill")


def test_a_refused_smiles_goes_to_other_processes_as_it_is() -> None:
    refused = pickle.loads(pickle.dumps(Refused("CC", "is too much")))
    assert refused == "CC"
    assert refused.reason == "is too much"
    with pytest.raises(MoleculeError, match="'CC' is too much"):
        parse(refused)


def test_large_and_dense_molecules_are_described_in_seconds() -> None:
    started = time.process_time()
    large, dense, small = describe(["C" * 1_500, all_bonded(14), "CCO"], "rdkit")
    assert time.process_time() - started < 10
    assert not np.isnan(small).any()
    unknown = {
        name: (one, other) for name, one, other in zip(RDKIT_NAMES, np.isnan(large), np.isnan(dense), strict=True)
    }
    assert unknown["BalabanJ"] == (True, False)
    assert unknown["Chi4v"][1]
    assert unknown["MolWt"] == unknown["TPSA"] == (False, False)


def test_nothing_is_known_of_a_molecule_whose_descriptors_end_a_process() -> None:
    both = [Refused("CCO", "is too much"), "CCO"]
    assert np.isnan(describe(both, "rdkit", processes=1)).all(axis=1).tolist() == [True, False]
    assert describe(both, "morgan", processes=1).any(axis=1).tolist() == [False, True]


@quick_rdkit
def test_a_large_molecule_is_its_own_scaffold() -> None:
    started = time.process_time()
    assert scaffold(parse("C" * 2_000)) == "C" * 2_000
    assert scaffold(parse("CCc1ccccc1")) == "c1ccccc1"
    assert time.process_time() - started < 10
