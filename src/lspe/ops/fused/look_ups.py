"""Rows that are looked up in a table, alone or as sums of several.

The embedding of the types of nodes or edges has few different rows. Rows remember the table that they come from: what
depends on nothing but the row can be computed of the table.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor
from torch.nn import functional as F

from lspe.ops.fused.layout import empty_rows, unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator

FEWEST_ROWS_PER_VALUE = 2
"""A table is used where it has at most so many times fewer rows than there are edges."""


class LookedUp(NamedTuple):
    """Rows that were looked up in a table: ``values[kind]``."""

    values: Tensor
    kind: Tensor


def look_up(values: Tensor, kind: Tensor) -> Tensor:
    """``[E, d]``: ``values[kind]`` of values ``[T, d]``; the result remembers where it comes from."""
    rows = sum_of_entries(values, kind.unsqueeze(1))
    if values.size(0) * FEWEST_ROWS_PER_VALUE <= kind.size(0):
        rows._looked_up = LookedUp(values, kind), _version(rows)  # type: ignore[attr-defined]
    return rows


def looked_up(rows: Tensor) -> LookedUp | None:
    """Where rows come from, if from a table and nobody has changed them since."""
    source, version = getattr(rows, "_looked_up", (None, 0))
    return source if version == _version(rows) else None


def _version(rows: Tensor) -> int:
    """How often rows were written to; what belongs to inference mode does not know."""
    return 0 if rows.is_inference() else rows._version


def sum_of_entries(table: Tensor, entry: Tensor) -> Tensor:
    r"""``[R, d]``: :math:`\sum_c \mathrm{table}[\mathrm{entry}_{rc}]` of a table ``[T, d]`` and entries ``[R, C]``."""
    (rows,) = _of_entries(table, entry, plain=lambda table, entry: (F.embedding(entry, table).sum(1),))
    assert rows is not None
    return rows


def _sums_of_entries(table: Tensor, entry: Tensor) -> list[Tensor]:
    rows = empty_rows(table, entry.size(0), table.size(1))
    _call("sums_of_entries", table, entry, rows)
    return [rows]


def _gradient_of_table(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    table, entry = arguments
    assert gradients[0] is not None
    of_table = table.new_empty(table.shape)
    _call("sums_by_entry", of_table, entry, gradients[0])
    return [of_table, None]


def _call(function: str, table: Tensor, entry: Tensor, rows: Tensor) -> None:
    library_for(table).call(
        function,
        threads=threads(),
        columns=entry.size(1),
        entry=entry.contiguous(),
        table=unit_rows(table),
        rows=unit_rows(rows),
    )


_of_entries = Operator(_sums_of_entries, gradient=_gradient_of_table)
