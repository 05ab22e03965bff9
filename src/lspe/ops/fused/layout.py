"""Rows of features as the C sources want them."""

from torch import Tensor

LANES = 16
"""Widths are padded to a multiple of this: as many numbers as the widest vector of any processor holds."""
MOST_LAYERS = 16
"""That are one operator (``MOST_LAYERS`` in csrc/norm.h)."""


def padded_width(width: int) -> int:
    return -(-width // LANES) * LANES


def unit_rows(x: Tensor) -> Tensor:
    """``[rows, width]`` with the numbers of a row side by side, and the rows themselves not over each other."""
    return x if x.stride(1) == 1 and x.stride(0) >= x.size(1) else x.contiguous()


def row_step(x: Tensor) -> int:
    """How far apart the rows of x are; PyTorch may say anything where there is only one."""
    return x.stride(0) if x.size(0) > 1 else x.size(1)


def rows_like(x: Tensor) -> Tensor:
    """Empty, of the shape of x, its rows as far apart as those of x."""
    x = unit_rows(x)
    return x.new_empty(x.size(0), row_step(x))[:, : x.size(1)]


def empty_rows(like: Tensor, rows: int, width: int) -> Tensor:
    """``[rows, width]`` whose rows stand ``padded_width(width)`` apart; the padding may be written, too."""
    return like.new_empty(rows, padded_width(width))[:, :width]


def padded_rows(x: Tensor) -> Tensor:
    """``[rows, width]`` → ``[rows, padded width]`` in one piece: x itself where its rows are so far apart, else a copy.

    What the padding holds is undefined.
    """
    rows, width = x.shape
    padded = padded_width(width)
    if x.stride() == (padded, 1) and x.untyped_storage().size() >= (x.storage_offset() + rows * padded) * x.itemsize:
        return x.as_strided((rows, padded), (padded, 1))
    whole = x.new_zeros(rows, padded)
    whole[:, :width] = x
    return whole
