"""Functions in C with hand-written gradients as operators of PyTorch's autograd."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._utils import _unflatten_dense_tensors
from torch.autograd.function import once_differentiable

from lspe.ops.choice import only_fused
from lspe.ops.fused.gathering import Places, places_of
from lspe.ops.fused.library import Refused

Plain = Callable[..., Sequence[Tensor | None]]
_BESIDE = 3
"""What a function is given in front of the arguments."""


class Operator:
    """A kernel in C with its gradient, and a plain twin for what C cannot serve.

    The plain twin, in PyTorch's own operators, takes the same arguments and gives the same results. It serves calls
    that the border refuses, and gradients that are to be differentiated again.

    Args:
        kernel: arguments, then parameters → new tensors: results, then what only the gradient needs.
        results: how many of the kernel's tensors are results; the first ``differentiable`` of them have a gradient.
        kept_from: the kernel's tensors from this one on are kept for the gradient, beside all arguments.
        gradient: ``(arguments and parameters, kept, gradients of the results)`` → gradients of the arguments, ``None``
            where an argument has none, then one vector with those of all parameters side by side, if there are any.

    """

    def __init__(
        self,
        kernel: Callable[..., Sequence[Tensor]],
        *,
        results: int = 1,
        differentiable: int | None = None,
        kept_from: int = 1,
        gradient: Callable[[Sequence[Any], Sequence[Tensor], Sequence[Tensor | None]], Sequence[Tensor | None]],
    ) -> None:
        self.kernel = kernel
        self.results = results
        if differentiable is None:
            differentiable = results
        self._function = _function(kernel, results, differentiable, kept_from, gradient)

    def __call__(
        self, *arguments: Any, parameters: Sequence[Tensor] = (), plain: Plain, instead: Plain | None = None
    ) -> Sequence[Tensor | None]:
        """The results; ``plain`` is the twin, ``instead`` the one for calls that are refused, if it is another.

        Parameters are arguments whose gradients may be gathered (:mod:`lspe.ops.fused.gathering`).
        """
        try:
            if not torch.is_grad_enabled():
                return self.kernel(*arguments, *parameters)[: self.results]
            places = places_of(parameters) if parameters and any(map(_has_gradient, arguments)) else None
            if places is None:
                return self._function.apply(plain, len(parameters), None, *arguments, *parameters)
            return self._function.apply(plain, len(parameters), places, *arguments)
        except RuntimeError:  # of the border, or of a product on the way there: the plain twin has the words for it
            if only_fused():
                raise
            return (instead or plain)(*arguments, *parameters)


def _function(
    kernel: Callable[..., Sequence[Tensor]],
    results: int,
    differentiable: int,
    kept_from: int,
    gradient: Callable[[Sequence[Any], Sequence[Tensor], Sequence[Tensor | None]], Sequence[Tensor | None]],
) -> type[torch.autograd.Function]:
    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, plain: Plain, parameters: int, places: Places | None, *arguments: Any
        ) -> tuple[Tensor, ...]:
            """The last ``parameters`` of all arguments are such; where they have ``places`` autograd is not told."""
            output = kernel(*arguments, *(() if places is None else places.parameters))
            ctx.plain, ctx.parameters, ctx.places = plain, parameters, places
            _save(ctx, arguments, output[kept_from:])
            ctx.mark_non_differentiable(*output[differentiable:results])
            return tuple(output[:results])

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
            arguments, kept = _recall(ctx)
            known, places = len(arguments), ctx.places
            if all(one is None for one in gradients):
                return (None,) * (_BESIDE + known)
            if places is not None:
                arguments += places.parameters
            needed = (*ctx.needs_input_grad[_BESIDE:], *[True] * (len(arguments) - known))
            first = len(arguments) - ctx.parameters
            if torch.is_grad_enabled():
                if places is not None:
                    raise RuntimeError("gradients that are gathered in one vector cannot be differentiated again")
                found = _PlainGradient.apply(ctx.plain, needed, len(gradients), *gradients, *arguments)
            elif (found := in_c(arguments, kept, gradients)) is None:
                found = plain_gradient(ctx.plain, needed, gradients, _alone(arguments))
                if places is not None:
                    places.add(_joined(found[first:], places.parameters))
            elif places is not None:
                places.add(found[first])
            elif ctx.parameters:
                found = [*found[:first], *_unflatten_dense_tensors(found[first], arguments[first:])]
            return *[None] * _BESIDE, *found[:known]

    def in_c(
        arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
    ) -> Sequence[Tensor | None] | None:
        """``None`` where it is not served."""
        if any(_is_batched(one) for one in gradients):
            return None
        try:
            return gradient(arguments, kept, gradients)
        except Refused:
            return None

    return Fused


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
        wanted = [argument for argument, is_needed in zip(arguments, needed, strict=True) if is_needed]
        found = _grad(results, gradients, wanted, create_graph=again)
    rest = iter(found)
    return [next(rest) if is_needed else None for is_needed in needed]


class _PlainGradient(torch.autograd.Function):
    """:func:`plain_gradient`, which can be differentiated once more."""

    @staticmethod
    def forward(ctx: Any, plain: Plain, needed: Sequence[bool], count: int, *tensors: Any) -> tuple[Tensor | None, ...]:
        ctx.plain, ctx.needed, ctx.count = plain, needed, count
        _save(ctx, tensors, ())
        alone = _alone(tensors)
        return tuple(plain_gradient(plain, needed, alone[:count], alone[count:]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *of_gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        tensors = _alone(_recall(ctx)[0])
        is_wanted = [isinstance(x, Tensor) and x.requires_grad for x in tensors]
        with torch.enable_grad():
            first = plain_gradient(ctx.plain, ctx.needed, tensors[: ctx.count], tensors[ctx.count :], again=True)
            found = _grad(first, of_gradients, [x for x, wanted in zip(tensors, is_wanted, strict=True) if wanted])
        rest = iter(found)
        return None, None, None, *(next(rest) if wanted else None for wanted in is_wanted)


def _grad(
    outputs: Sequence[Tensor | None],
    gradients: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    create_graph: bool = False,
) -> Sequence[Tensor | None]:
    """``torch.autograd.grad`` of those outputs that have a gradient and depend on anything."""
    pairs = [
        (output, gradient)
        for output, gradient in zip(outputs, gradients, strict=False)
        if output is not None and gradient is not None and output.requires_grad
    ]
    if not pairs:
        return [None] * len(inputs)
    some, theirs = zip(*pairs, strict=True)
    return torch.autograd.grad(some, inputs, theirs, create_graph=create_graph, allow_unused=True)


def _save(ctx: Any, arguments: Sequence[Any], kept: Sequence[Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.others = [None if isinstance(x, Tensor) else x for x in arguments]
    ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in arguments), *kept)


def _recall(ctx: Any) -> tuple[list[Any], list[Tensor]]:
    """All arguments, and what was kept."""
    saved, count = ctx.saved_tensors, len(ctx.others)
    arguments = [tensor if other is None else other for tensor, other in zip(saved[:count], ctx.others, strict=True)]
    return arguments, list(saved[count:])


def _joined(gradients: Sequence[Tensor | None], like: Sequence[Tensor]) -> Tensor:
    """Side by side, zeros for those that are none."""
    pairs = zip(gradients, like, strict=True)
    return torch.cat([torch.zeros_like(x).flatten() if one is None else one.flatten() for one, x in pairs])


def _has_gradient(argument: Any) -> bool:
    return isinstance(argument, Tensor) and argument.requires_grad


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
