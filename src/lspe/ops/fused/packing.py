"""Several linear maps of one input as one product of matrices.

Their weights stand side by side, each padded to a multiple of 16 columns: a product of matrices is slow where the
result has an odd number of columns, and the C sources work on whole vectors.
"""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from lspe.ops.fused.layout import padded_width
from lspe.ops.fused.library import library_for


class Columns(NamedTuple):
    """Columns ``first`` to ``end`` of a weight ``[out, in]``: what a map does with one part of its input."""

    weight: Tensor
    first: int = 0
    end: int | None = None

    @property
    def inputs(self) -> int:
        return (self.weight.size(1) if self.end is None else self.end) - self.first


def empty_packed(maps: Sequence[Columns], like: Tensor) -> Tensor:
    """``[padded inputs, maps · padded outputs]`` for the maps of one input; empty where there are none."""
    if not maps:
        return like.new_empty(0)
    return like.new_empty(padded_width(maps[0].inputs), len(maps) * padded_width(maps[0].weight.size(0)))


def pack_maps(maps: Sequence[Columns], like: Tensor) -> Tensor:
    """The same with the weights in it, and zeros in the padding."""
    packed = empty_packed(maps, like)
    if maps:
        outputs = maps[0].weight.size(0)
        library_for(like).pack_maps(
            len(maps), outputs, maps[0].inputs, padded_width(outputs), packed.size(0), *_places(maps), packed
        )
    return packed


def unpack_maps(packed: Tensor, maps: Sequence[Columns]) -> None:
    """``[inputs, maps · padded outputs]`` in one piece → written into the weights."""
    outputs = maps[0].weight.size(0)
    library_for(packed).unpack_maps(len(maps), outputs, maps[0].inputs, padded_width(outputs), *_places(maps), packed)


def _places(maps: Sequence[Columns]) -> tuple[ctypes.Array[ctypes.c_int64], ctypes.Array[ctypes.c_int64]]:
    array = ctypes.c_int64 * len(maps)
    begin = [part.weight.data_ptr() + part.first * part.weight.itemsize for part in maps]
    return array(*begin), array(*[part.weight.stride(0) for part in maps])
