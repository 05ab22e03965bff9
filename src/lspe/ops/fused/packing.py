"""Several linear maps of one input as one product of matrices.

Their weights stand side by side, each padded to a multiple of 16 columns: a product of matrices is slow where the
result has an odd number of columns, and the C sources work on whole vectors.
"""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from lspe.ops.fused.layout import padded_width, unit_rows
from lspe.ops.fused.library import library_for


class Columns(NamedTuple):
    """Columns ``first`` to ``end`` of a weight ``[out, in]``: what a map does with one part of its input."""

    weight: Tensor
    first: int = 0
    end: int | None = None

    @property
    def inputs(self) -> int:
        return (self.weight.size(1) if self.end is None else self.end) - self.first


def pack_maps(maps: Sequence[Columns], like: Tensor) -> Tensor:
    """``[padded inputs, maps · padded outputs]`` with the weights of one input in it, and zeros in the padding."""
    packed = like.new_empty(padded_width(maps[0].inputs), len(maps) * padded_width(maps[0].weight.size(0)))
    _call("pack_maps", [part._replace(weight=unit_rows(part.weight)) for part in maps], packed)
    return packed


def unpack_maps(packed: Tensor, maps: Sequence[Columns]) -> None:
    """``[inputs, maps · padded outputs]`` → written into the weights, whose rows stand side by side."""
    _call("unpack_maps", maps, packed)


def _call(function: str, maps: Sequence[Columns], packed: Tensor) -> None:
    library_for(packed).call(
        function,
        maps=len(maps),
        inputs=maps[0].inputs,
        weight=[part.weight for part in maps],
        first=[part.first for part in maps],
        packed=packed,
    )
