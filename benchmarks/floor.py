"""The products of matrices that a network cannot do without, alone: the floor of its training step, and of inference.

Counted are the products of the plain forward pass and the two that the gradient of each needs, in their cheapest exact
arrangement: products of one left side are one product with the right sides beside each other, at padded widths; rows
that were looked up in a table (the embeddings of bonds, say, of which there are four) are multiplied once each; of
products of one left side whose rows are then scaled by a few different numbers (PNA's scalers, which depend on the
degree) one is enough, by the sum of the scaled right sides; towers are either one small product each or all together a
block-diagonal one, whichever is quicker.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.measure import interleaved

_MULTIPLE = 16
"""Widths are padded to multiples of it, as the fused operators do: such products are quicker than odd ones."""
_MOST_TOWERS = 16
"""Batches of more matrices are no towers but, say, the graphs of attention, whose right sides are not maps."""


_ROWS_PER_SCALE = 8
"""So many rows have one scale, at least, where it pays to scale the right sides instead."""


class Products(TorchDispatchMode):
    """Records shape of the left side and columns of every product of matrices; those of one left side become one."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: dict[tuple[Any, ...], list[int]] = {}
        self._kept: list[Tensor] = []  # so that no other tensor comes to stand where one of these did
        self._rows_of_table: dict[int, int] = {}
        self._made_by: dict[int, tuple[Any, ...]] = {}
        self._scaled: set[tuple[Any, ...]] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        result = function(*args, **(kwargs or {}))
        if name in ("mm", "addmm", "bmm"):
            left, right = args[-2:]
            self._kept.append(left)
            shape = list(left.shape[1:] if left.dim() == 3 and left.size(0) == 1 else left.shape)
            if left.dim() == 2:
                shape[0] = min(shape[0], self._rows_of_table.get(left.data_ptr(), shape[0]))
            key = (left.data_ptr(), *shape)
            self.columns.setdefault(key, []).append(right.size(-1))
            self._made_by[result.data_ptr()] = key
            self._kept.append(result)
        elif name == "embedding":
            self._kept.append(result)
            self._rows_of_table[result.data_ptr()] = args[0].size(0)
        elif name == "mul" and isinstance(args[0], Tensor) and args[0].data_ptr() in self._made_by:
            self._scale(self._made_by[args[0].data_ptr()], args[1])
        return result

    def _scale(self, key: tuple[Any, ...], factor: Any) -> None:
        """The rows of a product times one of few numbers each: one right side is enough for all such products."""
        by_row = isinstance(factor, Tensor) and factor.dim() > 1 and factor.numel() == factor.size(0)
        if not by_row or factor.unique().numel() * _ROWS_PER_SCALE > factor.numel():
            return
        if key in self._scaled:
            self.columns[key].pop()
        self._scaled.add(key)


def products_of(forward: Callable[[], object], *, gradients: bool = True) -> Callable[[], None]:
    """A function that does the products of ``forward`` and, where wanted, the two that the gradient of each needs."""
    with torch.no_grad(), Products() as products:
        forward()
    triples = [cheapest(shape, columns) for (_, *shape), columns in products.columns.items()]

    def run() -> None:
        for triple in triples:
            triple.forward()
        if gradients:
            for triple in reversed(triples):
                triple.backward()

    return run


class Triple:
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

    def both(self) -> None:
        self.forward()
        self.backward()


def cheapest(left: list[int], columns: list[int]) -> Triple:
    """The products of one left side with right sides of so many columns, in the quickest of the arrangements."""
    *batch, rows, inner = left
    if not batch:
        return Triple((rows, padded(inner)), (padded(inner), sum(map(padded, columns))))
    towers, width = batch[0], sum(columns)
    if towers > _MOST_TOWERS:
        return Triple((towers, rows, inner), (towers, inner, width))
    choices = [
        Triple((towers, rows, inner), (towers, inner, width)),
        Triple((towers, rows, padded(inner)), (towers, padded(inner), padded(width))),
        Triple((rows, padded(towers * inner)), (padded(towers * inner), padded(towers * width))),
    ]
    times = interleaved([choice.both for choice in choices], 5)
    return choices[times.index(min(times))]


def padded(width: int) -> int:
    return -(-width // _MULTIPLE) * _MULTIPLE
