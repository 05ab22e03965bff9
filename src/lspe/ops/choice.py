"""Which operators are used: the fused ones in C or their plain PyTorch twins."""

import os
from types import TracebackType
from typing import Literal, get_args

import torch
from torch import Tensor

from lspe.ops.fused.library import PRECISION, library

Choice = Literal["auto", "fused", "plain"]


class use:
    """Choose the operators: ``use("plain")`` from here on, ``with use("plain"):`` for a block.

    ``auto``: fused ones for float32 and float64 tensors in the CPU's memory where a C compiler is found, plain ones
    otherwise. ``fused`` is an error where they cannot be used. ``plain`` needs nothing but PyTorch. The choice at the
    start is ``$LSPE_OPS``, ``auto`` if that is not set.
    """

    choice: Choice

    def __init__(self, operators: Choice) -> None:
        self._before = use.choice
        use.choice = _checked(operators, "lspe.ops.use")

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        use.choice = self._before


def _checked(operators: str, what: str) -> Choice:
    if operators not in get_args(Choice):
        raise ValueError(f"{what}: {operators!r} is not one of {', '.join(get_args(Choice))}")
    return operators  # type: ignore[return-value]


use.choice = _checked(os.environ.get("LSPE_OPS") or "auto", "the environment variable LSPE_OPS")


def fusible(*tensors: Tensor) -> bool:
    """Whether the fused operator is to be used on these tensors."""
    if use.choice == "plain":
        return False
    obstacle = _obstacle(tensors)
    if obstacle and use.choice == "fused":
        raise RuntimeError(f"fused operators were asked for, but {obstacle}")
    return obstacle is None


def status() -> str:
    """Which operators a CPU tensor meets, in words."""
    if use.choice == "plain":
        return "plain PyTorch, as chosen"
    obstacle = _obstacle((torch.empty(0),))
    return "fused, compiled C" if obstacle is None else f"plain PyTorch: {obstacle}"


def _obstacle(tensors: tuple[Tensor, ...]) -> str | None:
    dtype = tensors[0].dtype
    for tensor in tensors:
        if tensor.device.type != "cpu":
            return f"a tensor is on {tensor.device}, not in the CPU's memory"
        if tensor.dtype != dtype or dtype not in PRECISION:
            return f"they take float32 or float64 tensors, all of one kind, not {tensor.dtype} with {dtype}"
    if torch.is_autocast_enabled("cpu"):
        return "autocast chooses the precision"
    return None if library(dtype) else "they could not be compiled"
