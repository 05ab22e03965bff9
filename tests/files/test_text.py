"""Small files are there whole, or the error says why and what to do."""

import csv
from pathlib import Path

import pytest

from lspe.errors import UserError
from lspe.files import append_row, write_json, write_table, write_text


def test_tables_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_table(path, [{"a": 1, "b": None}, {"a": 2, "b": 'x, "y"'}])
    append_row(path, {"a": 3, "b": None})
    with path.open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"a": "1", "b": ""}, {"a": "2", "b": 'x, "y"'}, {"a": "3", "b": ""}]
    write_table(path, [], columns=["a", "b"])
    assert path.read_text() == "a,b\n"


def test_numbers_that_are_none_are_no_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "t.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_says_why_and_what_then(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "t.txt"
    with pytest.raises(UserError, match=r"t\.txt could not be written .*No such file.* then try again"):
        write_text(missing, "")
    with pytest.raises(UserError, match="then go on with it"):
        append_row(missing, {"a": 1}, then="go on with it")
