"""Linear maps of the rows of edges, of which many are alike.

The embedding of the types of edges has few different rows. What a map makes of a row depends on nothing else, so it is
computed of each different row once and looked up: of a table of four types of bonds instead of thousands of bonds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.fused.layout import empty_rows, padded_rows
from lspe.ops.fused.operator import Operator
from lspe.ops.fused.order import edges_by_end
from lspe.ops.fused.packing import Columns, pack_maps, unpack_maps

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
    return _look_up(values, kind, *edges_by_end(kind, values.size(0)))


def looked_up(rows: Tensor) -> LookedUp | None:
    """Where rows come from, if from a table and nobody has changed them since."""
    source, version = getattr(rows, "_looked_up", (None, 0))
    return source if version == _version(rows) else None


def _version(rows: Tensor) -> int:
    """How often rows were written to; what belongs to inference mode does not know."""
    return 0 if rows.is_inference() else rows._version


def sum_of_entries(table: Tensor, entry: Tensor) -> Tensor:
    r"""``[R, d]``: :math:`\sum_c \mathrm{table}[\mathrm{entry}_{rc}]` of a table ``[T, d]`` and entries ``[R, C]``."""
    (rows,) = _entries(table, entry, plain=lambda table, entry: (table[entry].sum(1),))
    assert rows is not None
    return rows


def map_edges(e: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``F.linear(e, weight, bias)``, ``[E, d']``, its rows padded."""
    if e.size(-1) != weight.size(1):
        return F.linear(e, weight, bias)  # which has the words for it
    source = looked_up(e)
    if source is not None:
        return _look_up(F.linear(source.values, weight, bias), *source[1:])
    (mapped,) = _product(e, weight, plain=lambda e, weight: (F.linear(e, weight),))
    assert mapped is not None
    return mapped if bias is None else mapped + bias


def map_values(e: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """``map_edges`` as ``values[kind]``: a table's rows and who has which, or a row for each edge and ``None``."""
    source = looked_up(e)
    if source is None or e.size(-1) != weight.size(1):
        return map_edges(e, weight, bias), None
    return F.linear(source.values, weight, bias), source.kind


def _look_up(values: Tensor, kind: Tensor, start: Tensor, row: Tensor) -> Tensor:
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


def _mapped(e: Tensor, weight: Tensor) -> list[Tensor]:
    packed = pack_maps([Columns(weight)], e)
    mapped = empty_rows(e, e.size(0), weight.size(0))
    torch.mm(e, packed[: e.size(1)], out=padded_rows(mapped))
    return [mapped, packed]


def _mapped_gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    e, weight = arguments
    assert gradients[0] is not None
    gradient = padded_rows(gradients[0])
    of_e, of_weight = empty_rows(e, *e.shape), weight.new_empty(weight.shape)
    torch.mm(gradient[:, : weight.size(0)], kept[0].t()[: weight.size(0)], out=padded_rows(of_e))
    unpack_maps(torch.mm(e.t(), gradient), [Columns(of_weight)])
    return [of_e, of_weight]


_table = Operator(_rows_of_table, gradient=_table_gradient)
_entries = Operator(_sums, gradient=_entries_gradient)
_product = Operator(_mapped, gradient=_mapped_gradient)
