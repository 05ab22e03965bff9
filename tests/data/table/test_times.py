"""A column that says when each row is from."""

from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lspe.data import DataError, read_table
from lspe.data.table.times import read_times

DAYS = [date(2019, 12, 25) + timedelta(days=97 * number % 1000) for number in range(30)]
FORMATS = ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d-%b-%Y", "%B %d, %Y", "%Y%m%d"]


@pytest.mark.parametrize("form", FORMATS)
def test_dates_as_people_write_them(form: str) -> None:
    times = read_times([f" {day.strftime(form)}" for day in DAYS], np.arange(2, 32), "measured")
    np.testing.assert_array_equal(np.argsort(times), np.argsort(DAYS))


@given(st.lists(st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)), min_size=1, max_size=20))
def test_times_as_iso_8601_has_them(times: list[datetime]) -> None:
    found = read_times([time.isoformat(" ") for time in times], np.arange(len(times)), "t")
    assert np.diff(found) == pytest.approx(np.diff([(time - datetime(1970, 1, 1)).total_seconds() for time in times]))


def test_a_zone_counts() -> None:
    early, late = read_times(["2024-05-01T12:00:00+02:00", "2024-05-01T11:00:00Z"], np.arange(2), "t")
    assert late - early == 3600


def test_years_and_other_numbers() -> None:
    assert read_times(["2019", "2020.5", "1,5e3"], np.arange(3), "year").tolist() == [2019.0, 2020.5, 1500.0]


@pytest.mark.parametrize(
    "cells, words",
    [
        (
            ["2024-05-01", "last May"],
            r"row 3 of the column 'when': 'last May' is no date or number as '2024-05-01' in row 2",
        ),
        (
            ["2024-05-01", "2021"],
            r"row 3 .* '2021' is no date or number as '2024-05-01' in row 2 is; write dates as 2024",
        ),
        (["", "2021"], "row 2 of the column 'when': '' is no date or number; write dates as 2024-05-31"),
        (["nan", "2021"], "row 2 of the column 'when': 'nan' is no date"),
        (["05/05/2024", "03/04/2024", "01/12/2024"], "row 3 .* which number of '03/04/2024' is the month no row tells"),
    ],
)
def test_what_is_no_time_is_named(cells: list[str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_times(cells, np.arange(2, 2 + len(cells)), "when")


def test_a_table_is_divided_by_it(tmp_path: Path) -> None:
    """The latest three of 30 molecules are tested; one that was measured again late counts from its beginning."""
    rows = [f"{'C' * (number + 1)},{number},{day}" for number, day in enumerate(DAYS)]
    (tmp_path / "table.csv").write_text("\n".join(["smiles,y,measured", *rows, "C,0.5,2030-01-01"]) + "\n")
    table = read_table(tmp_path / "table.csv", targets="y", split_column="measured")
    data = table.to_graphs(split="time")
    assert data.division == "by time"
    latest = np.argsort(DAYS)[-3:]
    assert sorted(data.splits["test"].tolist()) == sorted(latest.tolist())
    assert {0, 30} <= set(data.splits["train"].tolist())
    with pytest.raises(DataError, match=r"'2019-12-25' is none of train, val and test .*--split time"):
        table.to_graphs(split="column")
    with pytest.raises(DataError, match="a column divides into parts, not into folds"):
        table.to_graphs(split="time", folds=3)
    with pytest.raises(DataError, match="to divide by time, which a column tells, name it"):
        read_table(tmp_path / "table.csv", targets="y").to_graphs(split="time")
