"""Functions in C with hand-written gradients as operators of PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lspe.ops.choice import only_fused

_ORDINARY = frozenset({Tensor, nn.Parameter, bool, int, float, type(None)})
"""Types of arguments that hold values; tensors of other types only record what is done with them."""

Plain = Callable[..., Sequence[Tensor | None]]


class Operator:
    """A kernel in C as an operator of ``torch.ops.lspe``, with a plain twin for what C cannot serve.

    The way through ``torch.library`` costs some 100 µs per call, as much as the work on a small batch. So it is taken
    only while a graph is recorded (torch.export, torch.compile, fake tensors); otherwise autograd calls the kernel.

    The plain twin, in PyTorch's own operators, takes the same arguments and gives the same results. It serves calls
    that the border refuses, and gradients that are to be differentiated again.

    Args:
        schema: name and types as PyTorch writes them: ``"name(Tensor x, Tensor? y) -> (Tensor, Tensor)"``.
        kernel: tensors → new tensors, on the CPU: results, then what only the gradient needs.
        like: the same arguments → empty tensors of the shapes and strides that the kernel would return.
        results: how many of the kernel's tensors are results; the first ``differentiable`` of them have a gradient.
        kept_from: the kernel's tensors from this one on are kept for the gradient, beside all arguments.
        gradient: ``(arguments, kept, gradients of the results)`` → gradients of the arguments, ``None`` where an
            argument has none.

    """

    def __init__(
        self,
        schema: str,
        kernel: Callable[..., Sequence[Tensor]],
        like: Callable[..., Sequence[Tensor]],
        *,
        results: int = 1,
        differentiable: int | None = None,
        kept_from: int = 1,
        gradient: Callable[[Sequence[Any], Sequence[Tensor], Sequence[Tensor | None]], Sequence[Tensor | None]],
    ) -> None:
        self.name = schema[: schema.index("(")]
        self.kernel, self.gradient = kernel, gradient
        self.results, self.kept_from = results, kept_from
        self.differentiable = results if differentiable is None else differentiable
        self._is_single = schema.endswith("-> Tensor")
        if self._is_single:
            self._recorded = recorded(schema, lambda *x: kernel(*x)[0], lambda *x: like(*x)[0])
        else:
            self._recorded = recorded(schema, kernel, like)
        self._recorded.register_autograd(self._recorded_gradient, setup_context=self._remember_recorded)
        self._function = _function(self)

    def __call__(self, *arguments: Any, plain: Plain) -> Sequence[Tensor | None]:
        """The results; ``plain`` is the twin."""
        if torch.compiler.is_compiling() or not _ORDINARY.issuperset(map(type, arguments)):
            output = self._recorded(*arguments)
            return (output,) if self._is_single else output[: self.results]
        try:
            if torch.is_grad_enabled():
                return self._function.apply(plain, *arguments)
            return self.kernel(*arguments)[: self.results]
        except RuntimeError:  # of the border, or of a product on the way there: the plain twin has the words for it
            if only_fused():
                raise
            return plain(*arguments)

    def _remember(self, ctx: Any, inputs: tuple[Any, ...], output: Sequence[Tensor]) -> None:
        ctx.set_materialize_grads(False)
        ctx.arguments = [None if isinstance(x, Tensor) else x for x in inputs]
        ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in inputs), *output[self.kept_from :])

    def _remember_recorded(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        self._remember(ctx, inputs, [output] if self._is_single else output)

    def _recorded_gradient(self, ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        arguments, kept = self.recall(ctx)
        if all(gradient is None for gradient in gradients[: self.differentiable]):
            return (None,) * len(arguments)
        return tuple(self.gradient(arguments, kept, gradients[: self.results]))

    def recall(self, ctx: Any) -> tuple[list[Any], list[Tensor]]:
        """All arguments, and what was kept."""
        saved = ctx.saved_tensors
        count = len(ctx.arguments)
        arguments = [
            tensor if other is None else other for tensor, other in zip(saved[:count], ctx.arguments, strict=True)
        ]
        return arguments, list(saved[count:])


def recorded(schema: str, kernel: Callable[..., Any], like: Callable[..., Any]) -> Any:
    """A kernel as an operator of ``torch.ops.lspe`` without a gradient."""
    name = schema[: schema.index("(")]
    definition = torch.library.custom_op(
        f"lspe::{name}", kernel, mutates_args=(), device_types="cpu", schema=schema.removeprefix(name)
    )
    definition.register_fake(like)
    return definition


def without_gradient(schema: str, kernel: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel without a gradient that is recorded where a graph is, and called directly otherwise."""
    definition = recorded(schema, kernel, like)

    def call(*arguments: Any) -> Any:
        if torch.compiler.is_compiling() or not _ORDINARY.issuperset(map(type, arguments)):
            return definition(*arguments)
        return kernel(*arguments)

    return call


def _function(operator: Operator) -> type[torch.autograd.Function]:
    def forward(ctx: Any, plain: Plain, *inputs: Any) -> tuple[Tensor, ...]:
        output = operator.kernel(*inputs)
        ctx.plain = plain
        operator._remember(ctx, inputs, output)
        ctx.mark_non_differentiable(*output[operator.differentiable : operator.results])
        return tuple(output[: operator.results])

    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        arguments, kept = operator.recall(ctx)
        if all(gradient is None for gradient in gradients):
            return (None,) * (len(arguments) + 1)
        needed = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():
            return None, *_PlainGradient.apply(ctx.plain, needed, len(gradients), *gradients, *arguments)
        if any(_is_batched(gradient) for gradient in gradients):
            return None, *plain_gradient(ctx.plain, needed, gradients, _alone(arguments))
        return None, *operator.gradient(arguments, kept, gradients)

    return type(
        operator.name,
        (torch.autograd.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )


def plain_gradient(
    plain: Plain,
    needed: Sequence[bool],
    gradients: Sequence[Tensor | None],
    arguments: Sequence[Any],
    again: bool = False,
) -> list[Tensor | None]:
    """Gradients of the arguments, which have no history, by the plain twin; ``again``: to be differentiated."""
    with torch.enable_grad():
        results = plain(*arguments)
        pairs = [
            (result, gradient)
            for result, gradient in zip(results, gradients, strict=False)
            if result is not None and gradient is not None and result.requires_grad
        ]
        found = torch.autograd.grad(
            [result for result, _ in pairs],
            [argument for argument, wanted in zip(arguments, needed, strict=True) if wanted],
            [gradient for _, gradient in pairs],
            create_graph=again,
            allow_unused=True,
        )
    rest = iter(found)
    return [next(rest) if wanted else None for wanted in needed]


class _PlainGradient(torch.autograd.Function):
    """:func:`plain_gradient`, which can be differentiated once more."""

    @staticmethod
    def forward(ctx: Any, plain: Plain, needed: Sequence[bool], count: int, *tensors: Any) -> tuple[Tensor | None, ...]:
        ctx.plain, ctx.needed, ctx.count = plain, needed, count
        ctx.others = [None if isinstance(x, Tensor) else x for x in tensors]
        ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in tensors))
        ctx.set_materialize_grads(False)
        alone = _alone(tensors)
        return tuple(plain_gradient(plain, needed, alone[:count], alone[count:]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *of_gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = zip(ctx.saved_tensors, ctx.others, strict=True)
        tensors = _alone([tensor if other is None else other for tensor, other in saved])
        wanted = [isinstance(x, Tensor) and x.requires_grad for x in tensors]
        with torch.enable_grad():
            first = plain_gradient(ctx.plain, ctx.needed, tensors[: ctx.count], tensors[ctx.count :], again=True)
            pairs = [
                (one, of_one)
                for one, of_one in zip(first, of_gradients, strict=True)
                if one is not None and of_one is not None and one.requires_grad
            ]
            found = torch.autograd.grad(
                [one for one, _ in pairs],
                [x for x, is_wanted in zip(tensors, wanted, strict=True) if is_wanted],
                [of_one for _, of_one in pairs],
                allow_unused=True,
            )
        rest = iter(found)
        return None, None, None, *(next(rest) if is_wanted else None for is_wanted in wanted)


def _alone(tensors: Sequence[Any]) -> list[Any]:
    """Tensors without their history; leaves, such as parameters, are themselves."""
    return [
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) and x.grad_fn is not None else x
        for x in tensors
    ]


def _is_batched(x: Tensor | None) -> bool:
    """Whether a gradient stands for many (``is_grads_batched``, ``jacobian(vectorize=True)``)."""
    functorch = torch._C._functorch
    return x is not None and (functorch.is_legacy_batchedtensor(x) or functorch.is_functorch_wrapped_tensor(x))
