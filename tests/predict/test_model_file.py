"""A model in one file: the same numbers as its run, and nothing else is taken for one."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import lspe
from lspe.cli.main import app
from lspe.data.packed.container import ArrayWriter, open_arrays
from lspe.errors import UserError
from lspe.predict.model_file import open_model, save_model
from tests.members import member
from tests.small import SMILES, write_table

SMALL = {"model.layers": 1, "model.hidden_dim": 8, "model.k": 4, "training.batch_size": 16}
NEW = ["CCO", "CC(=O)Oc1ccccc1C(=O)O", "c1ccncc1", "C1CC"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, session_cache: None, few_trees: None) -> lspe.Run:
    folder = tmp_path_factory.mktemp("exported")
    table = write_table(folder / "table.csv")
    return lspe.train(table, out=folder / "run", members=2, epochs=2, settings=SMALL, threads=1)


@pytest.fixture(scope="module")
def exported(run: lspe.Run) -> Path:
    path = run.path.parent / "model.lspe"
    result = CliRunner().invoke(app, ["export", str(run.path), "-o", str(path)], catch_exceptions=False)
    assert "it holds the" in result.output
    return path


def test_the_numbers_are_those_of_the_run(run: lspe.Run, exported: Path) -> None:
    one, other = lspe.load(run.path), lspe.load(exported)
    np.testing.assert_array_equal(one.predict(NEW, return_std=True), other.predict(NEW, return_std=True))
    np.testing.assert_array_equal(one.predict_interval(NEW), other.predict_interval(NEW))
    assert one.explain("CCO").neighbours == other.explain("CCO").neighbours


def test_the_command_line_predicts_with_it(run: lspe.Run, exported: Path, tmp_path: Path) -> None:
    outputs = []
    for model in (run.path, exported):
        result = CliRunner().invoke(app, ["predict", str(model), "--smiles", "CCO"], catch_exceptions=False)
        outputs.append(result.stdout)
    assert outputs[0] == outputs[1]
    new = tmp_path / "new.csv"
    new.write_text("smiles,y\nCCO,103\n")
    result = CliRunner().invoke(app, ["evaluate", str(exported), str(new)], catch_exceptions=False)
    assert "1 molecule " in result.output
    assert "left out" not in result.output


def test_rows_that_are_not_scored_are_named(exported: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("smiles,y\nCCO,103\nC1C,100\nCCC,\nCCN,<90\nCC,99\n")
    result = CliRunner().invoke(app, ["evaluate", str(exported), str(new)], catch_exceptions=False)
    assert "2 molecules " in result.stdout
    assert "3 of 5 rows left out: row 3, column 'smiles': 'C1C' is not a SMILES" in result.stderr
    assert "row 4, column 'y': '' is no label; row 5, column 'y': '<90' is a limit" in result.stderr


def test_the_card_says_what_it_is(exported: Path) -> None:
    card = exported.with_suffix(".md").read_text()
    assert card == lspe.load(exported).card
    for words in (
        "# Model card: y",
        "- table.csv",
        "divided at random",
        "| test, together |",
        "90% of new values are expected within y ±",
        "elements it has seen, and in how many molecules: C (",
        "2 networks (gatedgcn, 1 layers",
        "the molecules it was trained on, with their labels",
    ):
        assert words in card


def test_molecules_and_places_stay_at_home(run: lspe.Run, tmp_path: Path) -> None:
    path = tmp_path / "model.lspe"
    CliRunner().invoke(app, ["export", str(run.path), "-o", str(path), "--no-molecules"], catch_exceptions=False)
    assert lspe.load(path).known is None
    assert "no molecules it was trained on" in path.with_suffix(".md").read_text()
    content = path.read_bytes()
    assert str(run.path.parent).encode() not in content
    assert not any(smiles.encode() in content for smiles in SMILES if len(smiles) > 8)


def test_nothing_is_pickled(exported: Path) -> None:
    file = open_arrays(exported)
    assert {array.dtype.kind for array in file.arrays.values()} <= set("fiu")


@pytest.mark.parametrize("place", [9, 100, 0.5, 0.99])
def test_an_altered_file_is_refused(place: float, exported: Path, tmp_path: Path) -> None:
    content = bytearray(exported.read_bytes())
    position = int(place * len(content)) if place < 1 else int(place)
    content[position] ^= 0x10
    altered = tmp_path / "altered.lspe"
    altered.write_bytes(content)
    with pytest.raises(UserError, match=r"altered\.lspe is no model that lspe export wrote, or it was altered"):
        lspe.load(altered)


def test_a_file_that_was_cut_off_or_is_something_else_is_refused(exported: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.lspe"
    for content in (
        exported.read_bytes()[:-100],
        b"",
        b"PK\x03\x04 a zip",
        struct.pack("<8sIQ32s", b"LSPE-SET", 1, 2**60, b""),
    ):
        other.write_bytes(content)
        with pytest.raises(UserError, match="is no model that lspe export wrote"):
            lspe.load(other)
    lspe.smiles_to_graphs(["CCO"]).graphs.save(other)
    with pytest.raises(UserError, match="is a file of lspe, but holds no model"):
        lspe.load(other)


def test_a_model_that_does_not_fit_together_is_refused(exported: Path, tmp_path: Path) -> None:
    """Whoever writes digests of their own still gets words, not a crash."""
    file = open_arrays(exported)
    about = file.meta["lspe model"]
    first = json.loads(json.dumps(about))
    first["members"][0]["experiment"]["model"]["hidden_dim"] = 16
    for meta, words in (
        (first, "does not fit together"),
        ({**about, "members": [{}]}, "does not fit together"),
        ({**about, "weights": [1.0]}, "does not fit together"),
        ({**about, "intervals": {"constants": [1.0, 1.0], "slopes": [0.0, 0.0]}}, "there are intervals of 2 targets"),
        ({**about, "format": 1}, "the model has format 1; this lspe reads format 2"),
    ):
        with ArrayWriter(tmp_path / "other.lspe") as writer:
            for name, array in file.arrays.items():
                writer.append(name, array)
            writer.finish({"lspe model": meta})
        with pytest.raises(UserError, match=words):
            lspe.load(tmp_path / "other.lspe")


def test_a_single_network_without_a_run(tmp_path: Path) -> None:
    predictor = lspe.Predictor([member("multiclass", classes=("a", "b", "c"))])
    save_model(predictor, tmp_path / "model.lspe")
    again = open_model(tmp_path / "model.lspe")
    np.testing.assert_array_equal(predictor.predict(NEW), again.predict(NEW))
    assert again.class_names == ("a", "b", "c")


def test_what_cannot_be_exported_or_combined(run: lspe.Run, exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"ends in \.lspe"):
        save_model(lspe.load(run.path), tmp_path / "model.zip")
    with pytest.raises(UserError, match="give it alone"):
        lspe.load([exported, run.path])
    with pytest.raises(UserError, match="it is a file"):
        lspe.Run.open(exported)
