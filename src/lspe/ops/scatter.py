"""Reduce the rows of edges into the rows of their targets; a row that nothing reaches is zero."""

import torch
from torch import Tensor


def scatter_sum(values: Tensor, target: Tensor, rows: int) -> Tensor:
    """``[E, d]`` → ``[rows, d]``: sum of the values with the same target."""
    return values.new_zeros(rows, *values.shape[1:]).index_add(0, target, values)


def scatter_max(values: Tensor, target: Tensor, rows: int) -> Tensor:
    """``[E, d]`` → ``[rows, d]``: greatest of the values with the same target."""
    return _scatter_extreme(values, target, rows, "amax")


def scatter_min(values: Tensor, target: Tensor, rows: int) -> Tensor:
    """``[E, d]`` → ``[rows, d]``: least of the values with the same target."""
    return _scatter_extreme(values, target, rows, "amin")


def _scatter_extreme(values: Tensor, target: Tensor, rows: int, reduce: str) -> Tensor:
    # rows start at infinity, not at zero: they would take part in the gradient of a maximum that is zero
    start = -torch.inf if reduce == "amax" else torch.inf
    index = target.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
    out = values.new_full((rows, *values.shape[1:]), start)
    out = torch.scatter_reduce(out, 0, index, values, reduce, include_self=False)
    reached = torch.zeros(rows, dtype=torch.bool, device=target.device).index_fill(0, target, True)
    return torch.where(reached.view(-1, *[1] * (values.dim() - 1)), out, values.new_zeros(()))
