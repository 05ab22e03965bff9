"""Linear maps of the rows of edges, of which many are alike.

The embedding of the types of edges has few different rows. What a map makes of a row depends on nothing else, so it is
computed of each different row once and looked up: of a table of four types of bonds instead of thousands of bonds.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.ops.fused.layout import empty_rows, padded_rows
from lspe.ops.fused.look_ups import look_up, looked_up
from lspe.ops.fused.operator import Operator
from lspe.ops.fused.packing import Columns, pack_maps, unpack_maps


def map_edges(e: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``F.linear(e, weight, bias)``, ``[E, d']``, its rows padded."""
    if e.size(-1) != weight.size(1):
        return F.linear(e, weight, bias)  # which has the words for it
    source = looked_up(e)
    if source is not None:
        return look_up(F.linear(source.values, weight, bias), source.kind)
    (mapped,) = _product(e, weight, plain=lambda e, weight: (F.linear(e, weight),))
    assert mapped is not None
    return mapped if bias is None else mapped + bias


def map_values(e: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """``map_edges`` as ``values[kind]``: a table's rows and who has which, or a row for each edge and ``None``."""
    source = looked_up(e)
    if source is None or e.size(-1) != weight.size(1):
        return map_edges(e, weight, bias), None
    return F.linear(source.values, weight, bias), source.kind


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


_product = Operator(_mapped, gradient=_mapped_gradient)
