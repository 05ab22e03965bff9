import csv
import gzip
import io
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from lspe.cli.predict import predict as predict_command
from lspe.data import DataError, TableChunk
from lspe.errors import UserError
from lspe.predict import Predictor, load
from lspe.predict.sources import iter_rows
from tests.members import SMILES, member, save

MISTAKES = ["CCO", "C(C", "c1ccccc1", "", "CC(=O)[O-].[Na+]"]


@pytest.fixture(scope="module")
def model() -> Predictor:
    return Predictor([member()])


@pytest.fixture(scope="module")
def ensemble() -> Predictor:
    return Predictor([member("binary", tasks=("a", "b"), seed=seed) for seed in range(3)])


def table_with_mistakes(path: Path) -> Path:
    rows = [[f'id "{number}", {text}', text, 10 * number] for number, text in enumerate(MISTAKES)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "SMILES", "amount"], *rows])
    return path


def test_every_row_and_column_is_kept_in_order(tmp_path: Path, model: Predictor) -> None:
    table = table_with_mistakes(tmp_path / "in.csv")
    summary = model.predict_table(table, tmp_path / "out.csv")
    before, after = (pd.read_csv(path, keep_default_na=False, dtype=str) for path in (table, tmp_path / "out.csv"))
    assert list(after.columns) == ["id", "SMILES", "amount", "y_predicted", "reason"]
    pd.testing.assert_frame_equal(after[list(before.columns)], before)
    expected = model.predict(MISTAKES)
    np.testing.assert_allclose(pd.to_numeric(after["y_predicted"]).to_numpy(), expected, rtol=1e-6)
    assert {row: reason for row, reason in enumerate(after["reason"]) if reason} == model.reasons
    assert (summary.rows, summary.without, summary.smiles_column) == (5, 2, "SMILES")
    assert "2 could not be read" in str(summary)


def test_as_many_rows_come_out_as_went_in(tmp_path: Path, model: Predictor) -> None:
    table = tmp_path / "in.csv"
    table.write_bytes(b'smiles,note\r\nCCO,"a\rb"\r\n,\r\n\r\n"C\nC","x\r\ny"\r\n  \r\nCC,"z"\r\n')
    for name in ("out.csv", "out.tsv", "out.parquet"):
        assert model.predict_table(table, tmp_path / name).rows == 4
    for name, delimiter in (("out.csv", ","), ("out.tsv", "\t")):
        with (tmp_path / name).open(newline="") as file:
            _, *rows = csv.reader(file, delimiter=delimiter)
        assert [row[:2] for row in rows] == [["CCO", "a\rb"], ["", ""], ["C\nC", "x\r\ny"], ["CC", "z"]]
    assert pd.read_parquet(tmp_path / "out.parquet")["note"].tolist() == ["a\rb", "", "x\r\ny", "z"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz", ".parquet.gz"])
def test_kinds_of_files(tmp_path: Path, model: Predictor, suffix: str) -> None:
    table = table_with_mistakes(tmp_path / "in.csv")
    out = tmp_path / f"out{suffix}"
    model.predict_table(table, out)
    content = gzip.decompress(out.read_bytes()) if suffix.endswith("gz") else out.read_bytes()
    if "parquet" in suffix:
        frame = pd.read_parquet(io.BytesIO(content))
    else:
        frame = pd.read_csv(io.BytesIO(content), sep="\t" if "tsv" in suffix else ",")
    np.testing.assert_allclose(frame["y_predicted"].to_numpy(dtype=float), model.predict(MISTAKES), rtol=1e-6)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_a_parquet_table_keeps_its_types(tmp_path: Path, model: Predictor) -> None:
    before = pd.DataFrame(
        {
            "smiles": SMILES,
            "whole": np.arange(len(SMILES), dtype=np.int32),
            "number": np.random.default_rng(0).normal(size=len(SMILES)),
            "flag": [True, False] * (len(SMILES) // 2),
            "day": pd.date_range("2021-10-15", periods=len(SMILES)),
            "text": ["007"] * len(SMILES),
        }
    )
    before.loc[3, "number"] = np.nan
    before.to_parquet(tmp_path / "in.parquet")
    model.predict_table(tmp_path / "in.parquet", tmp_path / "out.parquet")
    after = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(after[list(before.columns)], before)
    np.testing.assert_allclose(after["y_predicted"], model.predict(SMILES), rtol=1e-12)


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8) | st.sampled_from(
    ['"', "a,b", "x\ny", "'", "\t"]
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
def test_whatever_stands_in_other_columns_comes_through(
    tmp_path: Path, model: Predictor, cells: list[tuple[str, str]]
) -> None:
    with (tmp_path / "in.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["a", "smiles", "b"], *([one, "CCO", other] for one, other in cells)])
    model.predict_table(tmp_path / "in.csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    assert [(row[0], row[2]) for row in rows] == cells


def test_an_ensemble_writes_mean_and_standard_deviation(tmp_path: Path, ensemble: Predictor) -> None:
    table = table_with_mistakes(tmp_path / "in.csv")
    ensemble.predict_table(table, tmp_path / "out.csv")
    frame = pd.read_csv(tmp_path / "out.csv")
    assert list(frame.columns[3:]) == ["a_probability", "a_sd", "b_probability", "b_sd", "reason"]
    mean, sd = ensemble.predict(MISTAKES, return_std=True)
    np.testing.assert_allclose(frame[["a_probability", "b_probability"]], mean, rtol=1e-6)
    np.testing.assert_allclose(frame[["a_sd", "b_sd"]], sd, rtol=1e-6)


def test_classes_are_named(tmp_path: Path) -> None:
    model = Predictor([member("multiclass", tasks=("colour",), classes=("red", "dark green", "blue"))])
    model.predict_table(table_with_mistakes(tmp_path / "in.csv"), tmp_path / "out.csv")
    frame = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    probabilities = [f"colour_probability_{name}" for name in ("red", "dark green", "blue")]
    assert list(frame.columns[3:]) == ["colour_predicted", *probabilities, "reason"]
    values = model.predict(MISTAKES)
    for row, values_of_row in enumerate(values):
        expected = "" if np.isnan(values_of_row).any() else model.class_names[int(values_of_row.argmax())]
        assert frame["colour_predicted"][row] == expected


def test_columns_that_are_there_already_are_not_overwritten(tmp_path: Path, model: Predictor) -> None:
    model.predict_table(table_with_mistakes(tmp_path / "in.csv"), tmp_path / "once.csv")
    model.predict_table(tmp_path / "once.csv", tmp_path / "twice.csv")
    columns = pd.read_csv(tmp_path / "twice.csv").columns
    assert list(columns[3:]) == ["y_predicted", "reason", "y_predicted_2", "reason_2"]


def test_a_table_without_rows_gives_one_without_rows(tmp_path: Path, model: Predictor) -> None:
    (tmp_path / "in.csv").write_text("smiles,id\n")
    for suffix in ("csv", "parquet"):
        model.predict_table(tmp_path / "in.csv", tmp_path / f"out.{suffix}")
    assert (tmp_path / "out.csv").read_text() == "smiles,id,y_predicted,reason\n"
    assert len(pd.read_parquet(tmp_path / "out.parquet")) == 0


def test_columns_that_do_not_fit_are_refused_in_words(tmp_path: Path, model: Predictor) -> None:
    (tmp_path / "in.csv").write_text("id,weight\n1,2\n")
    with pytest.raises(DataError, match=r"no column is called 'smiles'. Its columns are id, weight"):
        model.predict_table(tmp_path / "in.csv", tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"has no column 'molecule'; it has id, weight"):
        model.predict_table(tmp_path / "in.csv", tmp_path / "out.csv", smiles_column="molecule")
    assert not (tmp_path / "out.csv").exists()


def test_the_column_of_training_is_found_again(tmp_path: Path) -> None:
    one = member()
    trained = one.experiment.model_copy(update={"table": _table_source("structure_text")})
    model = Predictor([type(one)(one.name, trained, one.interface, one.network)])
    (tmp_path / "in.csv").write_text("structure_text,smiles\nCCO,none\n")
    assert model.predict_table(tmp_path / "in.csv", tmp_path / "out.csv").without == 0


def _table_source(column: str):
    from lspe.experiment.table_source import TableSource

    return TableSource(path="table.csv", smiles=column)


def test_a_column_of_something_else_is_noticed(tmp_path: Path, model: Predictor) -> None:
    (tmp_path / "in.csv").write_text("smiles\nethanol\nbenzene\n")
    summary = model.predict_table(tmp_path / "in.csv", tmp_path / "out.csv")
    assert "Is 'smiles' the column of SMILES?" in str(summary)


def test_an_error_half_way_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, model: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_with_mistakes(tmp_path / "in.csv")
    (tmp_path / "out.csv").write_text("old")

    def breaks(*_: object) -> Iterator[TableChunk]:
        yield from islice(iter_rows(table, None), 1)
        raise DataError("row 900: cut off")

    monkeypatch.setattr("lspe.predict.tables.iter_rows", breaks)
    with pytest.raises(DataError, match="cut off"):
        model.predict_table(table, tmp_path / "out.csv", embeddings=tmp_path / "vectors.npz")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


@pytest.mark.parametrize(("name", "message"), [("out.xlsx", "ends in"), ("no/out.csv", "no folder"), (".", "ends in")])
def test_an_output_that_cannot_be_is_refused_before_any_work(
    tmp_path: Path, model: Predictor, name: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        model.predict_table(tmp_path / "does not exist.csv", tmp_path / name)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_vectors_in_a_file_are_those_of_embed(tmp_path: Path, model: Predictor, suffix: str) -> None:
    table = table_with_mistakes(tmp_path / "in.csv")
    model.predict_table(table, tmp_path / "out.csv", embeddings=tmp_path / f"vectors.{suffix}")
    expected = model.embed(MISTAKES)
    readable = [0, 2, 4]
    if suffix == "npz":
        with np.load(tmp_path / "vectors.npz", allow_pickle=False) as file:
            found = dict(file)
        assert found["row"].tolist() == readable
        parts = list(zip(found["atom_ptr"][:-1], found["atom_ptr"][1:], strict=True))
        graph = found["graph"]
        atoms = [found["atom"][begin:end] for begin, end in parts]
        positions = [found["position"][begin:end] for begin, end in parts]
    else:
        frame = pd.read_parquet(tmp_path / "vectors.parquet")
        assert frame["row"].tolist() == readable
        assert frame["smiles"].tolist() == [MISTAKES[row] for row in readable]
        graph = np.stack(frame["graph"])
        atoms, positions = ([np.stack(one) for one in frame[name]] for name in ("atoms", "positions"))
    np.testing.assert_allclose(graph, expected.graph[readable], rtol=1e-6)
    for number, row in enumerate(readable):
        np.testing.assert_allclose(atoms[number], expected.atoms[row], rtol=1e-6)
        np.testing.assert_allclose(positions[number], expected.positions[row], rtol=1e-6)


def test_vectors_of_a_network_without_positions(tmp_path: Path) -> None:
    model = Predictor([member("regression", preset="moltox21/gatedgcn")])
    for suffix in ("npz", "parquet"):
        model.predict_table(
            table_with_mistakes(tmp_path / "in.csv"), tmp_path / "out.csv", embeddings=tmp_path / f"vectors.{suffix}"
        )
    assert "position" not in np.load(tmp_path / "vectors.npz")
    assert pd.read_parquet(tmp_path / "vectors.parquet")["positions"].isna().all()


def test_a_file_of_smiles_lines(tmp_path: Path, model: Predictor) -> None:
    (tmp_path / "in.smi").write_text("CCO ethyl alcohol\n\nc1ccccc1\tbenzene\nCC\n")
    model.predict_table(tmp_path / "in.smi", tmp_path / "out.csv")
    frame = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert frame["smiles"].tolist() == ["CCO", "c1ccccc1", "CC"]
    assert frame["name"].tolist() == ["ethyl alcohol", "benzene", ""]
    np.testing.assert_allclose(frame["y_predicted"], model.predict(["CCO", "c1ccccc1", "CC"]), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.smi", b"\n\n", "is empty"),
        ("in.smi.gz", gzip.compress(b"CCO\n" * 1000, mtime=0)[:40], "damaged or was cut off"),
        ("in.csv.gz", gzip.compress(b"smiles\n" + b"CCO\n" * 1000, mtime=0)[:40], "damaged or was cut off"),
        ("in.parquet", b"PAR1 and nothing else", "damaged"),
        ("in.xlsx", b"PK\x03\x04", "damaged Excel workbook.*save the sheet as CSV"),
        ("missing.smi", None, "does not exist"),
    ],
)
def test_damaged_files_are_refused_in_words(
    tmp_path: Path, model: Predictor, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        model.predict_table(tmp_path / name, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_bytes_that_are_no_text_cost_only_their_line(tmp_path: Path, model: Predictor) -> None:
    (tmp_path / "in.smi").write_bytes(b"CCO\n\xff\xfeC\nCC\n")
    assert model.predict_table(tmp_path / "in.smi", tmp_path / "out.csv").without == 1


class Command:
    """The command as a person calls it."""

    def __init__(self) -> None:
        self.app = typer.Typer(pretty_exceptions_enable=False)
        self.app.command()(predict_command)

    def __call__(self, *arguments: object, stdin: str = "") -> tuple[list[dict[str, str]], str]:
        result = CliRunner().invoke(self.app, [str(one) for one in arguments], input=stdin, catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        return list(csv.DictReader(io.StringIO(result.stdout))), result.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [save(folder / f"seed{seed}", seed=seed) for seed in range(2)]


def test_molecules_on_the_command_line(runs: list[Path]) -> None:
    rows, said = Command()(runs[0], "--smiles", "CCO", "--smiles", "C(C")
    assert [row["smiles"] for row in rows] == ["CCO", "C(C"]
    assert float(rows[0]["y_predicted"]) == pytest.approx(load(runs[0]).predict("CCO")[0], rel=1e-6)
    assert (rows[1]["y_predicted"], rows[1]["reason"]) == ("", "is not a SMILES string")
    assert "1 could not be read" in said


def test_several_runs_on_the_command_line(runs: list[Path], tmp_path: Path) -> None:
    table = table_with_mistakes(tmp_path / "in.csv")
    Command()(*runs, table, "-o", tmp_path / "out.csv")
    mean, sd = load(runs).predict("CCO", return_std=True)
    frame = pd.read_csv(tmp_path / "out.csv")
    assert frame["y_predicted"][0] == pytest.approx(mean[0], rel=1e-6)
    assert frame["y_sd"][0] == pytest.approx(sd[0], rel=1e-3)


@pytest.mark.parametrize(
    ("text", "smiles"),
    [
        ("CCO\nc1ccccc1\n", ["CCO", "c1ccccc1"]),
        ("CCO ethanol\nC methane\n", ["CCO", "C"]),
        ("id;SMILES\n1;CCO\n", ["CCO"]),
    ],
)
def test_the_standard_input_holds_lines_or_a_table(runs: list[Path], text: str, smiles: list[str]) -> None:
    rows, _ = Command()(runs[0], "-", stdin=text)
    assert [row.get("smiles", row.get("SMILES")) for row in rows] == smiles
    np.testing.assert_allclose([float(row["y_predicted"]) for row in rows], load(runs[0]).predict(smiles), rtol=1e-6)


def test_a_column_named_like_a_molecule(runs: list[Path]) -> None:
    rows, _ = Command()(runs[0], "-", "--smiles-column", "C", stdin="C,O\nCCO,1\n")
    assert rows[0]["C"] == "CCO"
    assert rows[0]["O"] == "1"


def test_a_run_without_molecules_is_told_what_is_missing(runs: list[Path]) -> None:
    for arguments in ([runs[0]], runs):
        with pytest.raises(UserError, match="name a table"):
            Command()(*arguments)


def test_lines_are_read_only_as_far_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        read_lines = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:
            type(self).read_lines += 1
            buffer[:4] = b"CCO\n"
            return 4

    class Stdin:
        buffer = io.BufferedReader(Endless())

    monkeypatch.setattr(sys, "stdin", Stdin())
    chunk = next(iter_rows("-", None))
    assert chunk.column("smiles") == ["CCO"] * len(chunk)
    assert Endless.read_lines < 2 * len(chunk)
