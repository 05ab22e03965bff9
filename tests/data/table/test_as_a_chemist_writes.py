"""Tables as they come out of spreadsheets and databases: read as they are meant, or refused in words that help."""

from pathlib import Path

import numpy as np
import pytest

from lspe.data import DataError, read_table

CHAINS = ["C" * n for n in range(1, 31)]


def write(path: Path, header: str, rows: list[str], *, first: str = "", encoding: str = "utf-8") -> Path:
    path.write_text(first + "\n".join([header, *rows]) + "\n", encoding=encoding)
    return path


@pytest.mark.parametrize("first", ["", "sep=;\n"])
def test_semicolons_and_decimal_commas(first: str, tmp_path: Path) -> None:
    rows = [f"{smiles};{number},5" for number, smiles in enumerate(CHAINS)]
    table = read_table(write(tmp_path / "europe.csv", "smiles;logS", rows, first=first))
    assert table.task == "regression"
    assert table.targets.y[:, 0].tolist() == [number + 0.5 for number in range(30)]
    assert table.numbers[0] == (3 if first else 2)


def test_thousands_between_quotes(tmp_path: Path) -> None:
    rows = [f'{smiles},"1,{number:03d}.5"' for number, smiles in enumerate(CHAINS)]
    table = read_table(write(tmp_path / "table.csv", "smiles,mass", rows))
    assert table.targets.y[:, 0].tolist() == [1000.5 + number for number in range(30)]


def test_a_point_between_thousands_and_a_decimal_comma(tmp_path: Path) -> None:
    rows = [f"{smiles};1.234,{number:02d}" for number, smiles in enumerate(CHAINS)]
    table = read_table(write(tmp_path / "table.csv", "smiles;mass", rows))
    np.testing.assert_allclose(table.targets.y[:, 0], 1234 + np.arange(30) / 100)


@pytest.mark.parametrize("yes, no", [("active", "inactive"), ("Y", "N"), ("Positive", "negative"), ("T", "F")])
def test_two_words_for_yes_and_no_are_binary(yes: str, no: str, tmp_path: Path) -> None:
    rows = [f"{smiles},{yes if number % 3 else no}" for number, smiles in enumerate(CHAINS)]
    table = read_table(write(tmp_path / "table.csv", "smiles,class", rows))
    assert table.task == "binary"
    assert table.targets.y[:4, 0].tolist() == [0, 1, 1, 0]
    report = table.to_graphs().report
    assert report is not None
    assert report.notes == (f"'class': {yes!r} counts as 1, {no!r} counts as 0",)


def test_zeros_and_ones_need_no_words(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "table.csv", "smiles,y", [f"{one},{n % 2}" for n, one in enumerate(CHAINS)]))
    assert table.targets.notes == ()


def test_letters_that_are_more_than_yes_and_no_are_classes(tmp_path: Path) -> None:
    rows = [f"{smiles},{'ynz'[number % 3]}" for number, smiles in enumerate(CHAINS)]
    table = read_table(write(tmp_path / "table.csv", "smiles,class", rows))
    assert (table.task, table.targets.class_names) == ("multiclass", ("n", "y", "z"))


def test_no_value_is_a_missing_label(tmp_path: Path) -> None:
    rows = [f"{smiles},{number},{['n/a', '#N/A', 'NA', ''][number % 4]}" for number, smiles in enumerate(CHAINS)]
    rows[0] = "C,0,7.5"
    table = read_table(write(tmp_path / "table.csv", "smiles,a,b", rows), targets=["a", "b"])
    assert np.isnan(table.targets.y[1:, 1]).all()
    assert table.usable.all()


@pytest.mark.parametrize(
    "cell, words",
    [
        ("<4.0", "'<4.0' is a limit and not a measured number: write a number there, or leave the row out"),
        ("> 100", "is a limit"),
        ("#DIV/0!", "is an error of the spreadsheet"),
        ("about 3", "is not a number"),
    ],
)
def test_what_is_no_number_is_named(cell: str, words: str, tmp_path: Path) -> None:
    rows = [f"{smiles},{number}.5" for number, smiles in enumerate(CHAINS)]
    rows[4] = f"CCCCC,{cell}"
    path = write(tmp_path / "table.csv", "smiles,y", rows)
    with pytest.raises(DataError, match=f"row 6.*{words}.*--on-invalid skip"):
        read_table(path)
    assert read_table(path, on_invalid="skip").usable.sum() == 29


def test_latin_1_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", "smiles,y,name", ["C,1,Säure", "CC,2,x"], encoding="latin-1")
    with pytest.raises(DataError, match="may be Latin-1: save the table as CSV with encoding UTF-8"):
        read_table(path, targets="y")


def test_a_column_called_split_is_used_unless_another_division_is_asked_for(tmp_path: Path) -> None:
    rows = [f"{smiles},{number},{'test' if number % 5 == 0 else 'train'}" for number, smiles in enumerate(CHAINS)]
    table = read_table(write(tmp_path / "table.csv", "smiles,y,Split", rows))
    data = table.to_graphs(split=None)
    assert data.splits["test"].tolist() == list(range(0, 30, 5))
    assert data.division == "as 'Split' says"
    assert table.to_graphs(split="random").splits["test"].tolist() != data.splits["test"].tolist()
    assert table.to_graphs(split=None, folds=3).folds


def test_a_column_called_split_that_says_something_else_is_not(tmp_path: Path) -> None:
    rows = [f"{smiles},{number},{number % 2}" for number, smiles in enumerate(CHAINS)]
    table = read_table(write(tmp_path / "table.csv", "smiles,y,set", rows))
    assert table.split_column is None
    data = table.to_graphs(split=None)
    assert data.division == "at random"
    assert data.report is not None
    assert data.report.notes == ("the column 'set' does not divide the rows: '0' is none of train, val and test",)


def test_rows_of_one_molecule_stay_together(tmp_path: Path) -> None:
    twice = [*CHAINS, *("C(" + smiles[1:] + ")" if len(smiles) > 1 else smiles for smiles in CHAINS)]
    rows = [f"{smiles},{number}" for number, smiles in enumerate(twice)]
    table = read_table(write(tmp_path / "table.csv", "smiles,y", rows))
    for division in (table.to_graphs().splits, *table.to_graphs(folds=4).folds):
        parts = [set(part % 30) for part in division.values()]
        assert sum(map(len, parts)) == 30


def test_duplicates_can_be_left_out_or_averaged(tmp_path: Path) -> None:
    rows = [f"{smiles},{number}" for number, smiles in enumerate([*CHAINS, *CHAINS[:10]])]
    table = read_table(write(tmp_path / "table.csv", "smiles,y", rows))
    first, mean = table.to_graphs(duplicates="first"), table.to_graphs(duplicates="mean")
    for data in (first, mean):
        assert sorted(np.concatenate(list(data.splits.values()))) == list(range(30))
    assert first.graphs.graph["y"][3, 0] == 3
    assert mean.graphs.graph["y"][3, 0] == (3 + 33) / 2
    assert mean.graphs.graph["y"][20, 0] == 20
    for data, told in (
        (table.to_graphs(), "40 of 40 rows used\n10 × duplicate kept"),
        (first, "30 of 40 rows used\n10 × duplicate left out"),
        (mean, "40 of 40 rows used\n10 × duplicate, counted in the mean of its molecule"),
    ):
        assert data.report is not None
        assert data.report.summary() == told


def test_labels_have_no_mean(tmp_path: Path) -> None:
    rows = [f"{smiles},{number % 2}" for number, smiles in enumerate([*CHAINS, "C"])]
    table = read_table(write(tmp_path / "table.csv", "smiles,y", rows))
    with pytest.raises(DataError, match="the mean of labels of a molecule is no label"):
        table.to_graphs(duplicates="mean")
