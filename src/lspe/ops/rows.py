"""Rows of features as the C sources want them: padded to whole blocks of channels."""

from collections.abc import Sequence

from torch import Tensor

from lspe.ops.native import library

LANES = 16


def padded_width(width: int) -> int:
    """The next multiple of 16 (``LANES`` in csrc/real.h)."""
    return -(-width // LANES) * LANES


def unit_rows(x: Tensor) -> Tensor:
    """``[rows, width]`` with the numbers of a row side by side, and the rows themselves not over each other."""
    return x if x.stride(1) == 1 and x.stride(0) >= x.size(1) else x.contiguous()


def padded_rows(x: Tensor, padded: int) -> Tensor:
    """``[rows, width]`` → ``[rows, padded]`` in one piece: x itself where its rows stand so far apart, else a copy.

    What the padding holds is undefined.
    """
    rows = x.size(0)
    if x.stride() == (padded, 1) and x.untyped_storage().size() >= (x.storage_offset() + rows * padded) * x.itemsize:
        return x.as_strided((rows, padded), (padded, 1))
    whole = x.new_zeros(rows, padded)
    whole[:, : x.size(1)] = x
    return whole


def pack_maps(weights: Sequence[Tensor], padded: int) -> Tensor:
    """Weights ``[out, in]`` of maps that see the same input → ``[in, maps · padded]``, zeros between them."""
    native = library(weights[0].dtype)
    assert native is not None
    inputs = weights[0].size(1)
    packed = weights[0].new_zeros(padded_width(inputs), len(weights) * padded)
    for number, weight in enumerate(weights):
        to = packed[:, number * padded :]
        native.transpose(weight.size(0), inputs, weight, weight.stride(0), to, packed.stride(0))
    return packed


def unpack_maps(packed: Tensor, weights: Sequence[Tensor], padded: int) -> None:
    """Copy the blocks of ``[in, maps · padded]`` back to ``weights``, each ``[out, in]``."""
    native = library(packed.dtype)
    assert native is not None
    for number, weight in enumerate(weights):
        block = packed[:, number * padded :]
        native.transpose(weight.size(1), weight.size(0), block, packed.stride(0), weight, weight.stride(0))
