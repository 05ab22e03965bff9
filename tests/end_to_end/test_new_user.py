"""The first ten minutes: everything a new user types, on a table of their own and on two well-known ones."""

import csv
import math
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem.Crippen import MolLogP

import lspe
from lspe.data.benchmarks.nci import source_file
from lspe.predict.model_file import save_model
from tests.end_to_end.conftest import Computer
from tests.small import write_table

pytestmark = pytest.mark.slow

REQUIREMENTS = """
from importlib.metadata import requires, version
from packaging.requirements import Requirement
import lspe
print(lspe.__file__)
for text in requires("lspe"):
    wanted = Requirement(text)
    if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
        assert wanted.specifier.contains(version(wanted.name), prereleases=True), text
"""


def molnet(name: str) -> Path:
    root = os.environ.get("LSPE_DATA")
    if not root or not Path(root, "molnet", name).is_file():
        pytest.skip(f"LSPE_DATA does not name a folder with molnet/{name}")
    return Path(root, "molnet", name)


def own_table(path: Path) -> None:
    """Sixty molecules with a computed logP and four mistakes, as people's tables have them."""
    lines = [line.split("\t")[0] for line in source_file().read_text().splitlines()[:80]]
    smiles = [text for text in lines if "." not in text and Chem.MolFromSmiles(text) is not None][:60]
    rows = [[f"NCI {number}", text, f"{MolLogP(Chem.MolFromSmiles(text)):.2f}"] for number, text in enumerate(smiles)]
    rows[7][1] = "C1CC(C"
    rows[11][2] = "n.d."
    rows[23][2] = ""
    rows[31][1] = ""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["compound", "Structure SMILES", "logP"], *rows])


def command_to_copy(printed: str) -> str:
    [command] = re.findall(r"^\s*(lspe predict .*)$", printed, re.MULTILINE)
    return command


def test_the_wheel_brings_everything_and_asks_for_what_is_there(computer: Computer) -> None:
    (computer.folder / "check.py").write_text(REQUIREMENTS)
    where, _ = computer.run("python check.py")
    assert Path(where.strip()).is_relative_to(computer.bin.parent)
    assert "train" in computer.run("lspe --help")[0]
    assert "own/gatedgcn-lspe" in computer.run("lspe presets")[0]


def test_a_table_with_mistakes_in_it(computer: Computer) -> None:
    own_table(computer.folder / "my table.csv")
    train = "lspe train --data 'my table.csv' --target logP --epochs 2 --out 'runs/my logP'"
    _, said = computer.run(train, fails=True)
    assert "row 13" in said
    assert "'n.d.'" in said
    assert "--on-invalid skip" in said

    printed, _ = computer.run(f"{train} --on-invalid skip")
    assert "56 of 60 rows used" in printed
    assert re.search(r"test, together +\d+\.\d+ +\d+\.\d+", printed)
    run = computer.folder / "runs" / "my logP"
    assert (run / "parity.png").read_bytes().startswith(b"\x89PNG")
    assert pd.read_csv(run / "rows.csv")["row"].tolist() == [9, 13, 25, 33]

    (computer.folder / "molecules.csv").write_text("id,smiles\n1,CCO\n2,not a molecule\n3,c1ccccc1\n")
    computer.run(command_to_copy(printed))
    predicted = pd.read_csv(computer.folder / "predicted.csv")
    beside = ["logP_sd", "logP_low", "logP_high"]
    assert list(predicted.columns) == ["id", "smiles", "logP_predicted", *beside, "reason"]
    assert predicted["logP_predicted"].isna().tolist() == [False, True, False]

    lines, _ = computer.run("lspe predict 'runs/my logP' -", stdin="CCO\n")
    [row] = csv.DictReader(lines.splitlines())
    assert math.isclose(float(row["logP_predicted"]), predicted["logP_predicted"][0], rel_tol=1e-5)

    computer.run("lspe plot curves 'runs/my logP' --out figures --format svg")
    assert (computer.folder / "figures" / "curves.svg").read_text().startswith("<?xml")

    _, said = computer.run("lspe predict 'runs/my logP' runs/nothing.csv", fails=True)
    assert "does not exist" in said


def test_a_model_that_was_handed_on_needs_nothing_but_the_wheel(
    computer: Computer, tmp_path: Path, session_cache: None, few_trees: None
) -> None:
    small = {"model.layers": 1, "model.hidden_dim": 8, "model.k": 4}
    table = write_table(tmp_path / "table.csv", "binary")
    run = lspe.train(table, out=tmp_path / "run", members=2, epochs=2, settings=small, threads=1)
    save_model(lspe.load(run.path), computer.folder / "handed on.lspe")
    smiles = ["CCO", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O"]
    options = " ".join(f"--smiles '{one}'" for one in smiles)
    printed, _ = computer.run(f"lspe predict 'handed on.lspe' {options} --nearest")
    rows = list(csv.DictReader(printed.splitlines()))
    expected = lspe.load(run.path).predict(smiles)
    for row, values in zip(rows, expected, strict=True):
        found = [float(row[f"{name}_probability"]) for name in ("ring", "large")]
        assert found == pytest.approx(values.tolist(), rel=1e-5)
        assert row["nearest_smiles"]


def test_freesolv(computer: Computer) -> None:
    table = molnet("freesolv.csv.gz")
    printed, _ = computer.run(f"lspe train --data {table} --epochs 2 --out runs/freesolv")
    assert "642 of 642 rows used" in printed
    pd.read_csv(table).head(50).to_csv(computer.folder / "molecules.csv", index=False)
    computer.run(command_to_copy(printed))
    predicted = pd.read_csv(computer.folder / "predicted.csv")
    assert predicted["y"].tolist() == pd.read_csv(table)["y"].head(50).tolist()
    test = pd.read_csv(computer.folder / "runs" / "freesolv" / "predictions.csv").set_index("row")
    shared = [row for row in test.index if row < 52]
    assert shared
    for row in shared:
        assert math.isclose(test["y_predicted"][row], predicted["y_predicted"][row - 2], rel_tol=1e-4, abs_tol=1e-4)


@pytest.mark.rare
def test_bbbp(computer: Computer) -> None:
    table = molnet("bbbp.csv.gz")
    printed, _ = computer.run(
        f"lspe train --data {table} --target p_np --split-column split --on-invalid skip --epochs 1 --out runs/bbbp"
    )
    assert re.search(r"test, together +0\.\d+", printed)
    assert (computer.folder / "runs" / "bbbp" / "roc.png").is_file()
    printed, _ = computer.run("lspe predict runs/bbbp --smiles CCO --smiles c1ccccc1O")
    probabilities = [float(row["p_np_probability"]) for row in csv.DictReader(printed.splitlines())]
    assert len(probabilities) == 2
    assert all(0 < one < 1 for one in probabilities)
