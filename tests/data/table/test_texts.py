"""Columns of text on disk."""

import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from lspe.data import read_table
from lspe.data.table import texts
from lspe.data.table.packing import packed_file
from lspe.data.table.texts import TextColumn

WORDS = ["CCO", "", "c1ccccc1", "Köln µ 水", "\0", "a\nb", "C" * 5000]


@pytest.mark.parametrize("at_once", [2, 10_000])
def test_what_goes_in_comes_out(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(texts, "AT_ONCE", at_once)
    column = TextColumn.of(WORDS)
    assert list(column) == WORDS == column[:] == [column[row] for row in range(len(WORDS))]
    assert (column[-1], column[1:4], len(column)) == (WORDS[-1], WORDS[1:4], len(WORDS))
    assert column == WORDS
    assert column != WORDS[:-1]
    with pytest.raises(IndexError):
        column[len(WORDS)]


def test_some_rows_in_any_order() -> None:
    column = TextColumn.of(WORDS)
    assert column.select(np.array([5, 0, 0])) == ["a\nb", "CCO", "CCO"]
    assert column.select(np.array([word == "" for word in WORDS])) == [""]


def test_nothing_is_a_column_too() -> None:
    assert list(TextColumn.of([])) == []
    assert list(TextColumn.of(["", ""])) == ["", ""]


def test_the_digest_tells_where_a_text_ends() -> None:
    digests = {TextColumn.of(some).digest() for some in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], [])}
    assert len(digests) == 5
    assert TextColumn.of(WORDS).digest() == TextColumn.of(list(WORDS)).digest()


def test_it_can_go_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(TextColumn.of(WORDS))) == WORDS


def test_of_a_table_a_few_bytes_per_row_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 4000
    path = tmp_path / "table.csv"
    path.write_text("smiles,name,y\n" + "".join(f"{'C' * 500},{'x' * 500}{row},{row}\n" for row in range(rows)))
    monkeypatch.setattr(texts, "AT_ONCE", 100)
    read_table(path, targets="y")  # what is imported on the way does not count
    tracemalloc.start()
    try:
        table = read_table(path, targets="y")
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        packed_file(table, "keep", False)
        chosen = table.smiles.select(np.flatnonzero(table.usable))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(chosen) == rows
    assert kept < 150 * rows
    assert peak < 300 * rows
