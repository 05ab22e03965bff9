"""What a row is: reading and writing agree on it, and so does a plain reader of CSV."""

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from lspe.data import DataError, iter_table_chunks, read_table
from lspe.files.tables import open_table

BREAKS = ["\r", "\n", "\r\n", '"', "\0", ",", " ", "\x0b", "\u2028", "\x85", "\x1a", "\ufeff"]
many = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(path: Path) -> list[list[str]]:
    return [list(row) for chunk in iter_table_chunks(path, rows=3, keep_empty=True) for row in chunk.rows]


def rewritten(path: Path, rows: list[list[str]], columns: tuple[str, ...]) -> Path:
    with open_table(path, dict.fromkeys(columns, False)) as table:
        table.write(rows)
    return path


@many
@given(cells=st.lists(st.tuples(st.text('CO1\r\n",\t \u2028'), st.text('CO1\r\n",\t \u2028')), max_size=8))
def test_what_is_written_is_read_as_it_was(tmp_path: Path, cells: list[tuple[str, str]]) -> None:
    rows = [list(pair) for pair in cells]
    for name in ("a.csv", "a.tsv"):
        path = rewritten(tmp_path / name, rows, ("smiles", "y"))
        assert rows_of(path) == rows
        with path.open(newline="", encoding="utf-8") as file:
            assert list(csv.reader(file, delimiter="," if name == "a.csv" else "\t"))[1:] == rows


@many
@given(
    lines=st.lists(st.sampled_from(["CCO,1", "c1ccccc1,2", '"C,C",3', ",", "", "  ", '"",""', '"a\nb",4']), max_size=8),
    damages=st.lists(st.tuples(st.integers(0, 200), st.sampled_from(BREAKS)), max_size=3),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_damaged_table_is_refused_or_gives_the_rows_of_a_plain_reader(
    tmp_path: Path, lines: list[str], damages: list[tuple[int, str]], end: str
) -> None:
    text = end.join(["smiles,y", *lines]) + end
    for place, what in damages:
        place = len("smiles,y") + len(end) + place % (len(text) - len("smiles,y"))
        text = text[:place] + what + text[place:]
    path = tmp_path / "damaged.csv"
    path.write_bytes(text.encode())
    try:
        rows = rows_of(path)
    except DataError as error:
        event(re.sub(r"\d+", "N", str(error).partition("damaged.csv, row ")[2]))
        return
    plain = [row for row in csv.reader(io.StringIO(text, newline="")) if row and (len(row) > 1 or not row[0].isspace())]
    assert len(rows) == len(plain) - 1
    copy = rewritten(tmp_path / "copy.csv", rows, ("smiles", "y"))
    assert rows_of(copy) == rows
    assert len(pd.read_csv(copy, skip_blank_lines=False)) == len(rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"smiles,y\nCCO,1\nC\rC,2\n", "row 3: a carriage return stands in the middle of it. Take it out"),
        (b"smiles,y\nCCO,1\nC\0C,2\n", "row 3: the character NUL stands there"),
        (b"s\0m\0i\0l\0e\0s\0\n\0C\0\n\0", "row 1: the character NUL stands there"),
    ],
)
def test_a_break_in_the_middle_of_a_row_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        rows_of(path)


def test_rows_end_as_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for end in ("\n", "\r\n", "\r"):
        path.write_bytes(end.join(["smiles,y", "CCO,1", '"C\rC",2', "", ",", "CC,3", ""]).encode())
        assert rows_of(path) == [["CCO", "1"], ["C\rC", "2"], ["", ""], ["CC", "3"]]
        assert read_table(path).numbers.tolist() == [2, 3, 6]
