"""Functions in C with hand-written gradients as operators of PyTorch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_ORDINARY = frozenset({Tensor, nn.Parameter, bool, int, float, type(None)})
"""Types of arguments that hold values; tensors of other types only record what is done with them."""


def operator(
    schema: str,
    kernel: Callable[..., Any],
    like: Callable[..., Any],
    *,
    remember: Callable[..., None] | None = None,
    gradient: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Register ``kernel`` as an operator of ``torch.ops.lspe``, and return a function that calls it.

    The way through ``torch.library`` costs some 100 µs a call, as much as the work on a small batch. So it is taken
    only while a graph is recorded (torch.export, torch.compile, fake tensors); otherwise autograd calls the kernel.

    Args:
        schema: name and types as PyTorch writes them: ``"name(Tensor x, Tensor? y) -> (Tensor, Tensor)"``.
        kernel: tensors → new tensors, on the CPU.
        like: the same arguments → empty tensors of the shapes and strides that the kernel would return.
        remember: ``(ctx, inputs, output)``, saves what the gradient needs.
        gradient: ``(ctx, *gradients of the outputs)`` → gradients of the inputs; not differentiable itself.

    """
    name = schema[: schema.index("(")]
    recorded = torch.library.custom_op(
        f"lspe::{name}", kernel, mutates_args=(), device_types="cpu", schema=schema.removeprefix(name)
    )
    recorded.register_fake(like)
    differentiable = kernel
    if remember is not None and gradient is not None:
        recorded.register_autograd(gradient, setup_context=remember)
        differentiable = _function(name, kernel, remember, gradient).apply

    def call(*arguments: Any) -> Any:
        if torch.compiler.is_compiling() or not _ORDINARY.issuperset(map(type, arguments)):
            return recorded(*arguments)
        return differentiable(*arguments) if torch.is_grad_enabled() else kernel(*arguments)

    return call


def _function(
    name: str, kernel: Callable[..., Any], remember: Callable[..., None], gradient: Callable[..., Any]
) -> type[torch.autograd.Function]:
    def forward(ctx: Any, *inputs: Any) -> Any:
        output = kernel(*inputs)
        remember(ctx, inputs, output)
        return output

    return type(
        name,
        (torch.autograd.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(once_differentiable(gradient))},
    )
