"""Rows that are looked up in a table, alone or as sums of several.

The embedding of the types of nodes or edges has few different rows. Rows remember the table that they come from: what
depends on nothing but the row can be computed of the table.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.fused.layout import empty_rows, padded_rows
from lspe.ops.fused.operator import Operator
from lspe.ops.fused.order import edges_by_end

FEWEST_ROWS_PER_VALUE = 2
"""A table is used where it has at most so many times fewer rows than there are edges."""


class LookedUp(NamedTuple):
    """Rows that were looked up in a table: ``values[kind]``, and in which order to find those of one kind."""

    values: Tensor
    kind: Tensor
    start: Tensor
    row: Tensor


def look_up(values: Tensor, kind: Tensor) -> Tensor:
    """``[E, d]``: ``values[kind]`` of values ``[T, d]``; the result remembers where it comes from."""
    if values.size(0) * FEWEST_ROWS_PER_VALUE > kind.size(0):
        return values.index_select(0, kind)
    return look_up_in_order(values, kind, *edges_by_end(kind, values.size(0)))


def looked_up(rows: Tensor) -> LookedUp | None:
    """Where rows come from, if from a table and nobody has changed them since."""
    source, version = getattr(rows, "_looked_up", (None, 0))
    return source if version == _version(rows) else None


def _version(rows: Tensor) -> int:
    """How often rows were written to; what belongs to inference mode does not know."""
    return 0 if rows.is_inference() else rows._version


def sum_of_entries(table: Tensor, entry: Tensor) -> Tensor:
    r"""``[R, d]``: :math:`\sum_c \mathrm{table}[\mathrm{entry}_{rc}]` of a table ``[T, d]`` and entries ``[R, C]``."""
    (rows,) = _entries(table, entry, plain=lambda table, entry: (F.embedding(entry, table).sum(1),))
    assert rows is not None
    return rows


def look_up_in_order(values: Tensor, kind: Tensor, start: Tensor, row: Tensor) -> Tensor:
    """:func:`look_up` where it is known which rows are of one kind."""
    (rows,) = _table(values, kind, start, row, plain=lambda values, kind, *_: (values.index_select(0, kind),))
    assert rows is not None
    rows._looked_up = LookedUp(values, kind, start, row), _version(rows)  # type: ignore[attr-defined]
    return rows


def _rows_of_table(values: Tensor, kind: Tensor, *_: Tensor) -> list[Tensor]:
    rows = empty_rows(values, kind.size(0), values.size(1))
    torch.index_select(padded_rows(values), 0, kind, out=padded_rows(rows))
    return [rows]


def _table_gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    values, _, start, row = arguments
    assert gradients[0] is not None
    return [sums_of_rows(padded_rows(gradients[0]), start, row)[:, : values.size(1)], None, None, None]


def _sums(table: Tensor, entry: Tensor) -> list[Tensor]:
    return [F.embedding_bag(entry, table, mode="sum")]


def _entries_gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """PyTorch's own sorts the entries first, which takes three times as long as the sums."""
    table, entry = arguments
    assert gradients[0] is not None
    start, place = edges_by_end(entry.flatten(), table.size(0))
    return [sums_of_rows(gradients[0], start, place.div_(entry.size(1), rounding_mode="floor")), None]


def sums_of_rows(x: Tensor, start: Tensor, row: Tensor) -> Tensor:
    """``[R, width]``: the sum of ``x[row[start[r]:start[r + 1]]]`` for each r."""
    if not x.size(0):
        return x.new_zeros(start.numel() - 1, x.size(1))
    return torch.embedding_bag(x, row, start, False, 0, False, None, True)[0]


_table = Operator(_rows_of_table, gradient=_table_gradient)
_entries = Operator(_sums, gradient=_entries_gradient)
