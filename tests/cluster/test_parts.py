"""A table in parts has the rows of the table, in its order."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lspe.cluster.parts import DividedTable, can_be_divided, check_new_folder, divide_parquet, divide_rows
from lspe.data import iter_table_chunks
from lspe.data.errors import DataError
from lspe.data.table.reading import iter_parquet_chunks
from lspe.errors import UserError


def frame(rows: int, begin: int = 0) -> pd.DataFrame:
    numbers = range(begin, begin + rows)
    return pd.DataFrame({"smiles": ["C" * (1 + number % 7) for number in numbers], "number": list(numbers)})


def numbers_in(divided: DividedTable) -> list[list[int]]:
    return [[int(row[1]) for chunk in part.chunks(3) for row in chunk.rows] for part in divided.parts]


@pytest.mark.parametrize("row_group_size", [4, 7, 100])
@pytest.mark.parametrize("begin, end", [(0, 23), (0, 4), (3, 5), (4, 8), (11, 23), (22, 23), (5, 5)])
def test_a_range_of_rows_of_a_parquet_file(tmp_path: Path, row_group_size: int, begin: int, end: int) -> None:
    frame(23).to_parquet(tmp_path / "table.parquet", row_group_size=row_group_size)
    chunks = list(iter_parquet_chunks(tmp_path / "table.parquet", begin, end, rows=3))
    assert [int(row[1]) for chunk in chunks for row in chunk.rows] == list(range(begin, end))
    assert [number for chunk in chunks for number in chunk.numbers] == list(range(begin + 2, end + 2))


def test_parts_of_a_folder_are_the_files_by_name_one_after_the_other(tmp_path: Path) -> None:
    for number, (rows, begin) in enumerate([(5, 0), (0, 5), (12, 5)]):
        table = pa.Table.from_pandas(
            frame(rows, begin), schema=pa.schema({"smiles": pa.string(), "number": pa.int64()})
        )
        pq.write_table(table, tmp_path / f"part-{number}.parquet")
    (tmp_path / "_SUCCESS").touch()
    divided = divide_parquet(tmp_path, 5)
    assert divided.columns == ("smiles", "number")
    assert numbers_in(divided) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16]]
    assert [part.first for part in divided.parts] == [0, 5, 10, 15]
    assert divided.rows == 17


@pytest.mark.parametrize("rows", [0, 4, 8, 9])
def test_other_tables_are_written_as_parquet_first(tmp_path: Path, rows: int) -> None:
    frame(rows).to_csv(tmp_path / "table.csv", sep=";", index=False)
    (tmp_path / "rows").mkdir()
    divided = divide_rows(iter_table_chunks(tmp_path / "table.csv", rows=2), tmp_path / "rows", 4)
    assert [number for part in numbers_in(divided) for number in part] == list(range(rows))
    assert len(divided.parts) == max(1, -(-rows // 4)) == len(list((tmp_path / "rows").iterdir()))
    assert divided.rows == rows
    assert all(chunk.decimal_comma for part in divided.parts for chunk in part.chunks(3))


def test_a_table_without_rows_is_one_part_without_rows(tmp_path: Path) -> None:
    frame(0).to_parquet(tmp_path / "table.parquet")
    divided = divide_parquet(tmp_path / "table.parquet", 5)
    assert (numbers_in(divided), divided.rows, divided.columns) == ([[]], 0, ("smiles", "number"))


def test_what_is_no_table_is_said(tmp_path: Path) -> None:
    assert not can_be_divided(tmp_path / "missing.parquet")
    with pytest.raises(DataError, match=r"is a folder without files that end in \.parquet"):
        divide_parquet(tmp_path, 5)
    frame(3).to_parquet(tmp_path / "a.parquet")
    frame(3).rename(columns={"number": "other"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet and .*a\.parquet differ"):
        divide_parquet(tmp_path, 5)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 is not all")
    with pytest.raises(DataError, match=r"b\.parquet is a damaged Parquet file"):
        divide_parquet(tmp_path, 5)


def test_nothing_is_mixed_with_what_is_there(tmp_path: Path) -> None:
    check_new_folder(tmp_path / "new")
    (tmp_path / "old").touch()
    for folder, said in (
        (tmp_path / "old", "is a file"),
        (tmp_path, "not empty"),
        (tmp_path / "no" / "x", "no folder"),
    ):
        with pytest.raises(UserError, match=said):
            check_new_folder(folder)
