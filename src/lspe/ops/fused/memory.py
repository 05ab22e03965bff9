"""Memory that a forward pass fills for its backward pass, and that the next forward pass takes again.

New memory is cleared by the system page by page: at a hundred megabytes a training step that takes as long as a quarter
of the products of matrices.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from lspe.ops.fused.library import Refused

_MOST_FREE = 64
_lock = Lock()


class _Block:
    """A tensor, and the lease that took it last."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.owner: Lease | None = None


_free: list[_Block] = []


class Lease:
    """Several pieces of memory for ``size`` numbers each, until they are given back and somebody else takes them."""

    def __init__(self, pieces: int, size: int, dtype: torch.dtype) -> None:
        self.size = size
        with _lock:
            self._blocks = [_take(size, dtype) for _ in range(pieces)]
            for block in self._blocks:
                block.owner = self
        self._where: list[tuple[int, int]] = []
        self._made: Any = None

    def tensors(self) -> list[Tensor]:
        """The memory; :class:`Refused` where it is somebody else's by now."""
        if any(block.owner is not self for block in self._blocks):
            raise Refused("what the forward pass left has been written over")
        return [block.tensor[: self.size] for block in self._blocks]

    def once(self, tensors: Sequence[Tensor], make: Callable[[], Any]) -> Any:
        """What ``make`` gives, which points at these tensors: for both passes, if they stay where they are."""
        where = [(tensor.data_ptr(), tensor.numel()) for tensor in tensors]
        if where != self._where:
            self._where, self._made = where, make()
        return self._made

    def give_back(self) -> None:
        """Let others take it. Until then it stays as it is, for another backward pass."""
        with _lock:
            _free.extend(block for block in self._blocks if block.owner is self and block not in _free)
            del _free[:-_MOST_FREE]


def _take(size: int, dtype: torch.dtype) -> _Block:
    """The smallest that is large enough and not far too large, or a new one."""
    fitting = [b for b in _free if b.tensor.dtype is dtype and size <= b.tensor.numel() <= 2 * size]
    if not fitting:
        return _Block(torch.empty(size + size // 8, dtype=dtype))
    block = min(fitting, key=lambda b: b.tensor.numel())
    _free.remove(block)
    return block
