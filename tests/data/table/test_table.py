import csv
import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from lspe.data import DataError, Table, iter_table_chunks, read_table

MOLECULES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCC", "C1CCCCC1", "O=C=O", "CC#N", "CCS", "CCCl", "c1ccncc1", "CO"]


def write(path: Path, text: str) -> Path:
    path.write_text(text, newline="", encoding="utf-8")
    return path


def rows(path: Path, columns: str, values: list[str], molecules: list[str] = MOLECULES) -> Path:
    return write(path, columns + "\n" + "\n".join(f"{m},{v}" for m, v in zip(molecules, values, strict=False)) + "\n")


@pytest.fixture
def solubility(tmp_path: Path) -> Path:
    return rows(tmp_path / "solubility.csv", "smiles,logS", [f"{0.5 * i - 2}" for i in range(12)])


def assert_nothing_is_lost(table: Table, data: object) -> None:
    """Each row is a graph with its own molecule and label, or is reported as left out."""
    graphs = data.graphs  # type: ignore[attr-defined]
    position = {number: row for row, number in enumerate(table.numbers.tolist())}
    used = set()
    for graph in graphs:
        row = position[int(graph.table_row)]
        used.add(int(graph.table_row))
        np.testing.assert_array_equal(graph.y.numpy().ravel(), table.targets.y[row].astype(np.float32).ravel())
        mol = Chem.MolFromSmiles(table.smiles[row].strip())
        assert graph.num_nodes <= mol.GetNumAtoms()
    left_out = {finding.row for finding in data.report.findings if finding.action == "left out"}  # type: ignore[attr-defined]
    assert used | left_out == set(table.numbers.tolist())
    assert not used & left_out
    assert data.report.rows == len(table)  # type: ignore[attr-defined]
    assert data.report.used == len(graphs)  # type: ignore[attr-defined]


def test_a_plain_table(solubility: Path) -> None:
    table = read_table(solubility)
    assert (table.smiles_column, table.target_columns, table.task) == ("smiles", ("logS",), "regression")
    data = table.to_graphs()
    assert_nothing_is_lost(table, data)
    assert data.features.kind == "ogb"
    assert sorted(np.concatenate(list(data.splits.values())).tolist()) == list(range(12))
    assert data.graphs[2].y.tolist() == [[-1.0]]
    assert data.report is not None
    assert data.report.findings == ()


@pytest.mark.parametrize(
    "form", ["csv", "semicolon", "tsv", "bom", "crlf", "utf-16", "csv.gz", "parquet", "parquet.gz"]
)
def test_every_form_of_a_table_gives_the_same(tmp_path: Path, solubility: Path, form: str) -> None:
    frame = pd.read_csv(solubility)
    path = tmp_path / f"other.{form}"
    text = solubility.read_text()
    match form:
        case "semicolon":
            write(path, text.replace(",", ";"))
        case "tsv":
            write(path, text.replace(",", "\t"))
        case "bom":
            path.write_bytes(b"\xef\xbb\xbf" + text.encode())
        case "crlf":
            write(path, text.replace("\n", "\r\n"))
        case "utf-16":
            path.write_text(text, encoding="utf-16")
        case "csv.gz":
            path.write_bytes(gzip.compress(text.encode()))
        case "parquet":
            frame.to_parquet(path)
        case "parquet.gz":
            buffer = io.BytesIO()
            frame.to_parquet(buffer)
            path.write_bytes(gzip.compress(buffer.getvalue()))
        case _:
            write(path, text)
    ours, expected = read_table(path), read_table(solubility)
    assert ours.smiles == expected.smiles
    assert ours.numbers.tolist() == expected.numbers.tolist() == list(range(2, 14))
    np.testing.assert_array_equal(ours.targets.y, expected.targets.y)


def test_quotes_commas_and_line_breaks_inside_values(tmp_path: Path) -> None:
    path = tmp_path / "quoted.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "smiles", "y"])
        for number, smiles in enumerate(MOLECULES):
            writer.writerow([f'a "name", with\nbreaks {number}', smiles, number])
    chunks = list(iter_table_chunks(path, rows=5))
    assert [len(chunk) for chunk in chunks] == [5, 5, 2]
    assert [number for chunk in chunks for number in chunk.numbers] == list(range(2, 14))
    assert chunks[1].column("name")[0] == 'a "name", with\nbreaks 5'
    assert read_table(path).targets.y.ravel().tolist() == list(range(12))


def test_the_standard_input_is_a_table_too(solubility: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(solubility.read_bytes())))
    assert [len(chunk) for chunk in iter_table_chunks("-")] == [12]
    assert not sys.stdin.closed


def test_empty_lines_count_but_are_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "gaps.csv", "\nsmiles,y\nCCO,1\n\n,\nCCN,2.5\n,,\n")
    [chunk] = iter_table_chunks(path)
    assert (chunk.column("smiles"), list(chunk.numbers)) == (["CCO", "CCN"], [3, 6])


@pytest.mark.parametrize(
    ("values", "task", "expected", "classes"),
    [
        (["1.5", "2", "-3e-1", "0"], None, "regression", 1),
        (["0", "1", "1.0", "0"], None, "binary", 1),
        (["true", "no", "YES", "False"], None, "binary", 1),
        (["high", "low", "high", "low"], None, "multiclass", 2),
        (["0", "1", "2", "1"], None, "regression", 1),
        (["0", "1", "2", "1"], "multiclass", "multiclass", 3),
        (["0", "1", "1", "0"], "regression", "regression", 1),
        (["10", "9", "9", "10"], "multiclass", "multiclass", 2),
    ],
)
def test_the_task_is_found_out_or_given(
    tmp_path: Path, values: list[str], task: str | None, expected: str, classes: int
) -> None:
    table = read_table(rows(tmp_path / "t.csv", "smiles,y", values * 3), task=task)  # type: ignore[arg-type]
    data = table.to_graphs(fractions=(0.5, 0.25, 0.25))
    assert (table.task, data.num_outputs) == (expected, classes)
    assert_nothing_is_lost(table, data)


def test_class_names_are_kept_in_their_order(tmp_path: Path) -> None:
    data = read_table(rows(tmp_path / "t.csv", "smiles,phase", ["solid", "gas", " liquid ", "gas"] * 3)).to_graphs()
    assert data.class_names == ("gas", "liquid", "solid")
    assert data.graphs.y[:4].tolist() == [2, 0, 1, 0]
    assert data.graphs.batch([0, 1]).y.tolist() == [2, 0]
    table = read_table(rows(tmp_path / "n.csv", "smiles,grade", ["10", "9", "2", "9"] * 3), task="multiclass")
    assert table.targets.class_names == ("2", "9", "10")


def test_many_binary_targets_with_gaps(tmp_path: Path) -> None:
    path = rows(tmp_path / "t.csv", "smiles,id,a,b", ["7,1,", "8,,0", "9,0,1", "10,nan,NA"] * 3)
    with pytest.raises(DataError, match="row 5, column 'a': 'nan' is no label, and the row has none of another"):
        read_table(path)
    table = read_table(path, on_invalid="skip")
    assert (table.task, table.target_columns) == ("binary", ("a", "b"))
    data = table.to_graphs()
    assert_nothing_is_lost(table, data)
    np.testing.assert_array_equal(data.graphs.y[:3], [[1, np.nan], [np.nan, 0], [0, 1]])
    assert data.report is not None
    assert data.report.used == 9


def test_targets_are_guessed_only_where_that_is_clear(tmp_path: Path) -> None:
    path = rows(tmp_path / "t.csv", "smiles,logP,mass", ["1.5,46", "2.5,78"] * 6)
    with pytest.raises(DataError, match=r"logP, mass could be the target\. Name the columns"):
        read_table(path)
    assert read_table(path, targets="mass").target_columns == ("mass",)
    assert read_table(path, targets=["mass", "logP"]).targets.y[0].tolist() == [46, 1.5]


@pytest.mark.parametrize("header", ["SMILES", "Canonical SMILES", "mol", "my_smiles_column"])
def test_the_molecules_column_is_found_by_its_name(tmp_path: Path, header: str) -> None:
    assert read_table(rows(tmp_path / "t.csv", f"{header},y", list("123456") * 2)).smiles_column == header


def test_columns_that_are_not_there_are_named(tmp_path: Path, solubility: Path) -> None:
    for arguments in ({"smiles": "S"}, {"targets": "S"}, {"weight": "S"}, {"split_column": "S"}):
        with pytest.raises(DataError, match=r"solubility.csv has no column 'S'; it has smiles, logS"):
            read_table(solubility, **arguments)  # type: ignore[arg-type]
    path = rows(tmp_path / "t.csv", "formula,y", ["1", "2"])
    with pytest.raises(DataError, match=r"no column is called 'smiles'\. Its columns are formula, y"):
        read_table(path)
    path = rows(tmp_path / "t.csv", "smiles_a,smiles_b", ["C", "C"])
    with pytest.raises(DataError, match=r"several columns may hold SMILES \(smiles_a, smiles_b\)"):
        read_table(path)
    with pytest.raises(DataError, match="'smiles' cannot be a target"):
        read_table(solubility, targets=["smiles"])


BAD = [*MOLECULES[:6], "C1CC", "", "C(C)(C)(C)(C)C", *MOLECULES[6:]]


def test_bad_molecules_stop_or_are_left_out_and_reported(tmp_path: Path) -> None:
    path = rows(tmp_path / "t.csv", "smiles,y", [str(i / 10) for i in range(15)], BAD)
    with pytest.raises(DataError) as stopped:
        read_table(path).to_graphs()
    assert "t.csv: row 8, column 'smiles': 'C1CC' is not a SMILES string; row 9" in str(stopped.value)
    assert "on_invalid='skip'" in str(stopped.value)
    for mode in ("skip", "nan"):
        table = read_table(path, on_invalid=mode)  # type: ignore[arg-type]
        data = table.to_graphs()
        assert_nothing_is_lost(table, data)
        assert data.report is not None
        assert [(one.row, one.value) for one in data.report.findings] == [(8, "C1CC"), (9, ""), (10, "C(C)(C)(C)(C)C")]
        assert "12 of 15 rows used" in data.report.summary()
        aligned = table.align(data, data.graphs.y)
        assert np.isnan(aligned[6:9]).all()
        np.testing.assert_allclose(np.delete(aligned, [6, 7, 8]), np.delete(np.arange(15) / 10, [6, 7, 8]), rtol=1e-6)


def test_bad_targets_stop_are_left_out_or_missing(tmp_path: Path) -> None:
    values = [f"{i},{i / 2}" for i in range(12)]
    values[3], values[5], values[7] = "n.d.,1", "4,inf", "?,-"
    path = rows(tmp_path / "t.csv", "smiles,a,b", values)
    with pytest.raises(
        DataError, match=r"row 5, column 'a': 'n.d.' is not a number; row 7, column 'b': 'inf' is infinite or too large"
    ):
        read_table(path, targets=["a", "b"])
    skipped = read_table(path, targets=["a", "b"], on_invalid="skip").to_graphs()
    assert sorted(skipped.graphs.column("table_row").tolist()) == [2, 3, 4, 6, 8, *range(10, 14)]
    table = read_table(path, targets=["a", "b"], on_invalid="nan")
    kept = table.to_graphs()
    assert_nothing_is_lost(table, kept)
    assert kept.report is not None
    assert [(one.row, one.action) for one in kept.report.findings] == [
        (5, "counted as missing"),
        (7, "counted as missing"),
        (9, "left out"),
    ]
    np.testing.assert_array_equal(kept.graphs.y[3], [np.nan, 1])


def test_the_report_is_a_table_itself_and_survives_the_cache(tmp_path: Path) -> None:
    path = rows(tmp_path / "t.csv", "smiles,y", [str(i) for i in range(15)], BAD)
    first = read_table(path, on_invalid="skip").to_graphs()
    again = read_table(path, on_invalid="skip").to_graphs()
    assert again.graphs.path == first.graphs.path
    assert again.report == first.report
    assert again.report is not None
    again.report.write_csv(tmp_path / "report.csv")
    with (tmp_path / "report.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["row"] for line in lines] == ["8", "9", "10"]
    assert lines[2]["problem"].startswith("is not a possible molecule: Explicit valence")
    assert {line["action"] for line in lines} == {"left out"}


def test_duplicates_are_reported_with_what_they_say(tmp_path: Path) -> None:
    molecules = [*MOLECULES, "OCC", "C(C)O"]
    table = read_table(rows(tmp_path / "t.csv", "smiles,y", [*map(str, range(12)), "0", "7"], molecules))
    data = table.to_graphs()
    assert_nothing_is_lost(table, data)
    assert data.report is not None
    assert [(one.row, one.problem) for one in data.report.findings] == [
        (14, "is the molecule of row 2, with the same target"),
        (15, "is the molecule of row 2, with another target"),
    ]


def test_salts_are_kept_cut_or_refused(tmp_path: Path) -> None:
    molecules = [*MOLECULES, "CC(=O)[O-].[Na+]"]
    table = read_table(rows(tmp_path / "t.csv", "smiles,y", [str(i) for i in range(13)], molecules), on_invalid="skip")
    assert table.to_graphs().graphs.num_nodes[12] == 5
    cut = table.to_graphs(fragments="largest")
    assert cut.graphs.num_nodes[12] == 4
    assert cut.report is not None
    assert [(one.row, one.problem, one.action) for one in cut.report.findings] == [
        (14, "has 2 fragments", "largest fragment kept")
    ]
    refused = table.to_graphs(fragments="error")
    assert_nothing_is_lost(table, refused)
    assert len(refused.graphs) == 12


def test_weights(tmp_path: Path) -> None:
    path = rows(tmp_path / "t.csv", "smiles,y,w", [f"{i},{i / 4}" for i in range(12)])
    data = read_table(path, targets="y", weight="w").to_graphs()
    assert data.graphs.batch([1, 4]).weight.tolist() == [0.25, 1.0]
    path = rows(
        tmp_path / "t.csv", "smiles,y,w", [f"{i},{'-1' if i == 3 else 'x' if i == 4 else 1}" for i in range(12)]
    )
    with pytest.raises(DataError, match="row 5, column 'w': '-1' is no weight"):
        read_table(path, targets="y", weight="w")
    assert len(read_table(path, targets="y", weight="w", on_invalid="skip").to_graphs().graphs) == 10
    with pytest.raises(DataError, match="'w' gives no row a weight above 0"):
        read_table(rows(tmp_path / "t.csv", "smiles,y,w", ["1,0", "2,0"]), targets="y", weight="w")


def test_splits_of_a_table(tmp_path: Path) -> None:
    part = ["train"] * 6 + ["valid"] * 3 + ["test"] * 3
    path = rows(tmp_path / "t.csv", "smiles,y,split", [f"{i % 2},{part[i]}" for i in range(12)])
    table = read_table(path, split_column="split")
    by_column = table.to_graphs(split="column")
    assert by_column.splits["val"].tolist() == [6, 7, 8]
    by_scaffold = table.to_graphs(split="scaffold")  # nine molecules without rings, three rings
    assert [by_scaffold.splits[name].tolist() for name in ("val", "test")] == [[10], [1, 5]]
    with pytest.raises(DataError, match=r"t.csv: divided by scaffold, the test part stays empty: 9 of 12"):
        table.to_graphs(split="scaffold", fractions=(0.5, 0.25, 0.25))
    folds = table.to_graphs(folds=3)
    for fold in folds.folds:
        assert np.bincount(folds.graphs.y[fold["test"], 0].astype(int)).tolist() == [2, 2]
    stratified = table.to_graphs(fractions=(0.5, 0.25, 0.25), seed=3)
    assert {int(stratified.split(name).y.sum()) for name in ("val", "test")} <= {1, 2}
    with pytest.raises(DataError, match="name it: split_column"):
        read_table(rows(tmp_path / "u.csv", "smiles,y", ["0"] * 11 + ["1"])).to_graphs(split="column")
    with pytest.raises(DataError, match=r"t.csv: 12 rows cannot be divided into 13 folds"):
        table.to_graphs(folds=13)
    without_rings = set(range(12)) - {1, 5, 10}
    tested = [set(fold["test"].tolist()) for fold in table.to_graphs(split="scaffold", folds=3).folds]
    assert all(tested)
    assert sum(bool(fold & without_rings) for fold in tested) == 1
    with pytest.raises(DataError, match=r"t.csv: a column divides into parts, not into folds"):
        table.to_graphs(split="column", folds=3)


def test_notes_on_targets_that_teach_little(tmp_path: Path) -> None:
    table = read_table(rows(tmp_path / "t.csv", "smiles,a,b", ["1,1", "0,1", "1,", "0,1"] * 3))
    report = table.to_graphs().report
    assert report is not None
    assert report.notes == ("the target 'b' holds only 1; it cannot be learned",)
    grades = read_table(rows(tmp_path / "g.csv", "smiles,y", ["1", "2", "3"] * 20, MOLECULES * 5)).to_graphs().report
    assert grades is not None
    assert "3 whole numbers; if they are classes say task multiclass" in grades.notes[0]


def test_real_tables(shared_data: Path) -> None:
    for name, task, targets, count in (
        ("freesolv", "regression", ("y",), 642),
        ("clintox", "binary", ("FDA_APPROVED", "CT_TOX"), 1478),
    ):
        table = read_table(shared_data / "molnet" / f"{name}.csv.gz", on_invalid="skip")
        data = table.to_graphs()
        assert (table.task, table.target_columns, len(table)) == (task, targets, count)
        assert data.report is not None
        assert data.report.used == len(data.graphs) == count
