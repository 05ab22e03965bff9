"""Which operators are used: the fused ones in C or their plain PyTorch twins."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules.module import _has_any_global_hook

from lspe.ops.fused.library import PRECISION, library

Choice = Literal["auto", "fused", "plain"]


def _checked(operators: str, what: str) -> Choice:
    if operators not in get_args(Choice):
        raise ValueError(f"{what}: {operators!r} is not one of {', '.join(get_args(Choice))}")
    return operators  # type: ignore[return-value]


_process: Choice = _checked(os.environ.get("LSPE_OPS") or "auto", "the environment variable LSPE_OPS")
_METHODS = {"forward", "message", "aggregate", "update"}
"""What replaced in an object, be it a layer or one of PyG's convs, makes it compute something else."""
_block: ContextVar[Choice | None] = ContextVar("lspe.ops.use", default=None)


@contextmanager
def use(operators: Choice) -> Iterator[None]:
    """Choose the operators of this thread for a block, as in ``with lspe.ops.use("plain"):``.

    ``auto``: fused ones for float32 and float64 tensors in the CPU's memory where a C compiler is found, plain ones
    for all that fused ones cannot serve. ``fused`` is an error where they cannot be used. ``plain`` needs nothing but
    PyTorch. :func:`choose` does the same for the whole process.
    """
    token = _block.set(_checked(operators, "lspe.ops.use"))
    try:
        yield
    finally:
        _block.reset(token)


def choose(operators: Choice) -> None:
    """Choose the operators for the process, from here on; at its start it is ``$LSPE_OPS``, or ``auto``."""
    global _process
    _process = _checked(operators, "lspe.ops.choose")


def chosen() -> Choice:
    """The choice in force here."""
    return _block.get() or _process


def only_fused() -> bool:
    """Whether the plain operators are not to stand in for the fused ones."""
    return chosen() == "fused"


def fusible(*tensors: Tensor | None, maps: Iterable[nn.Module | None] = (), bias: bool = True) -> bool:
    """Whether the fused operator is to be used on these tensors and linear maps; those that are ``None`` do not count.

    The operator is written for maps with or without a ``bias``.

    It is not where somebody else wants to see or replace what is computed on the way: functional transforms,
    forward-mode differentiation, tracing, autocast, hooks on a map or another module in its place.
    """
    choice = chosen()
    if choice == "plain":
        return False
    obstacle = _obstacle([tensor for tensor in tensors if tensor is not None], maps, bias)
    if obstacle and choice == "fused":
        raise RuntimeError(f"fused operators were asked for, but {obstacle}")
    return obstacle is None


def status() -> str:
    """Which operators a CPU tensor meets, in words."""
    if chosen() == "plain":
        return "plain PyTorch, as chosen"
    obstacle = _obstacle([torch.empty(0)], (), True)
    return "fused, compiled C" if obstacle is None else f"plain PyTorch: {obstacle}"


def _obstacle(tensors: list[Tensor], maps: Iterable[nn.Module | None], bias: bool) -> str | None:
    if torch.compiler.is_compiling():
        return "a graph is being recorded"
    dtype = tensors[0].dtype
    for tensor in tensors:
        if not tensor.is_cpu:
            return f"a tensor is on {tensor.device}, not in the CPU's memory"
        if type(tensor) is not Tensor and type(tensor) is not nn.Parameter:
            return f"they take ordinary tensors, not a {type(tensor).__name__}"
        if tensor.dtype is not dtype or dtype not in PRECISION:
            return f"they take float32 or float64 tensors, all of one kind, not {tensor.dtype} with {dtype}"
    if torch.is_autocast_enabled("cpu"):
        return "autocast chooses the precision"
    if torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
        return "a functional transform or forward-mode differentiation is at work"
    if torch._C._is_tracing():
        return "torch.jit is tracing"
    if _has_any_global_hook():
        return "a hook on all modules is registered"
    for linear in maps:
        if linear is not None and not _is_ordinary(linear, dtype, bias):
            return f"a map is no ordinary Linear of {dtype}: {linear}"
    return None if library(dtype) else "they could not be compiled"


def _is_ordinary(linear: nn.Module, dtype: torch.dtype, bias: bool) -> bool:
    """Whether a map is an ``nn.Linear``, with a bias or without, that nobody listens to."""
    if not is_unchanged(linear, nn.Linear):
        return False
    weight, its_bias = weight_and_bias(linear)
    return (its_bias is not None) == bias and weight.dtype is dtype


def weight_and_bias(part: nn.Module) -> tuple[Tensor, Tensor]:
    """Both parameters of a map or a normalisation.

    They are taken from where ``nn.Module`` keeps them: its search for an attribute takes as long as what is done with
    it here, for hundreds of parameters in each step.
    """
    known = part._parameters
    if "weight" in known and "bias" in known:
        return known["weight"], known["bias"]  # type: ignore[return-value]
    return part.weight, part.bias  # type: ignore[return-value]


def is_unchanged(module: nn.Module, *kinds: type) -> bool:
    """Whether a module is of one of these very classes, computes what they do, and nobody listens to it."""
    if type(module) not in kinds or not vars(module).keys().isdisjoint(_METHODS):
        return False
    return not is_listened_to(module)


def is_listened_to(module: nn.Module) -> bool:
    """Whether a hook of the module is to see what goes in or comes out."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )
