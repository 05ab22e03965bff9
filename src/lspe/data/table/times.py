"""When each row of a table is from, for a division by time: dates, or numbers such as years."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import numpy as np

from lspe.data.errors import DataError, shown
from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index

_HOW_TO_WRITE = "write dates as 2024-05-31"
_FORMATS = (
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%d-%b-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
)


def read_times(values: Sequence[str], rows: Index, column: str) -> Array:
    """The cells of a column as numbers that grow with time, ``[R]``.

    All are written in one way: as ISO 8601 has it, in another usual way, or as numbers. Where days and months could be
    exchanged, as in 03/04/2024, and rows would then follow each other in another order, the column is refused.
    """
    cells = [value.strip() for value in values]
    found = [times for times in (_as_far_as_read(cells, way) for way in _WAYS) if len(times) == len(cells)]
    if not found:
        position = max(len(_as_far_as_read(cells, way)) for way in _WAYS)
        like = f" as {shown(cells[0])} in row {rows[0]} is" if position else ""
        raise DataError(
            f"row {rows[position]} of the column {column!r}: {shown(cells[position])} is no date or number{like}; "
            f"{_HOW_TO_WRITE}"
        )
    orders = [np.argsort(times, kind="stable") for times in found]
    for order, times in zip(orders, found, strict=True):
        if not np.array_equal(order, orders[0]):
            position = next(row for row, (one, two) in enumerate(zip(found[0], times, strict=True)) if one != two)
            raise DataError(
                f"row {rows[position]} of the column {column!r}: which number of {shown(cells[position])} is the month "
                f"no row tells; {_HOW_TO_WRITE}"
            )
    return np.array(found[0])


def _as_far_as_read(cells: Sequence[str], way: Callable[[str], float | None]) -> list[float]:
    """The times of the cells before the first that is not written in such a way."""
    times = []
    for cell in cells:
        time = way(cell)
        if time is None:
            break
        times.append(time)
    return times


def _number(cell: str) -> float | None:
    try:
        number = float(cell.replace(",", "."))
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _date(read: Callable[[str], datetime], cell: str) -> float | None:
    try:
        time = read(cell)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _in_format(cell: str, form: str) -> datetime:
    return datetime.strptime(cell, form)


_WAYS: tuple[Callable[[str], float | None], ...] = (
    _number,
    partial(_date, datetime.fromisoformat),
    *(partial(_date, partial(_in_format, form=form)) for form in _FORMATS),
)
