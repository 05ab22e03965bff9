"""The products of matrices that a network cannot do without, alone: the floor of its training step."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_MULTIPLE = 16
"""Widths are padded to multiples of it, as the fused operators do: such products are quicker than odd ones."""


class Products(TorchDispatchMode):
    """Records rows, inner width and columns of every product of matrices; those of one left side become one."""

    def __init__(self) -> None:
        super().__init__()
        self.flat: dict[tuple[int, int, int], int] = {}
        self.batched: list[tuple[torch.Size, torch.Size]] = []
        self._kept: list[Tensor] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        if name in ("mm", "addmm", "bmm"):
            left, right = args[-2:]
            self._kept.append(left)
            if left.dim() == 3 and left.size(0) > 1:
                self.batched.append((left.shape, right.shape))
            else:
                place = (left.data_ptr(), *left.shape[-2:])
                self.flat[place] = self.flat.get(place, 0) + _padded(right.size(-1))
        return function(*args, **(kwargs or {}))


def products_of(forward: Callable[[], object]) -> Callable[[], None]:
    """A function that does the products of ``forward``, and the two that the gradient of each needs."""
    with torch.no_grad(), Products() as products:
        forward()
    flat = [_Triple((rows, _padded(inner)), (_padded(inner), out)) for (_, rows, inner), out in products.flat.items()]
    triples = [*flat, *(_Triple(left, right) for left, right in products.batched)]

    def run() -> None:
        for triple in triples:
            triple.forward()
        for triple in reversed(triples):
            triple.backward()

    return run


class _Triple:
    """C = A B forward; the gradients of A and of B backward."""

    def __init__(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        self.left, self.right = torch.randn(left), torch.randn(right)
        self.result = self.left @ self.right
        self.of_left, self.of_right = torch.empty(left), torch.empty(right)

    def forward(self) -> None:
        torch.matmul(self.left, self.right, out=self.result)

    def backward(self) -> None:
        torch.matmul(self.result, self.right.mT, out=self.of_left)
        torch.matmul(self.left.mT, self.result, out=self.of_right)


def _padded(width: int) -> int:
    return -(-width // _MULTIPLE) * _MULTIPLE
