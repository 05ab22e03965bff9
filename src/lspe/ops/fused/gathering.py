"""Gradients of parameters that are added up in one vector.

Autograd hands each gradient on by itself, microseconds for each of the hundred parameters of a stack of layers. The
layers' operator finds all of them side by side, and where somebody gathers them it adds them there itself.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor

from lspe.ops.fused.library import library_for


class Gradients:
    """One vector ``[P]`` for the gradients of all parameters, and of each parameter its part of it."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        sizes = [parameter.numel() for parameter in parameters]
        self.vector = torch.cat([torch.zeros_like(parameter.detach()).flatten() for parameter in parameters])
        parts = zip(parameters, self.vector.split(sizes), strict=True)
        self.parts = [(parameter, part.view_as(parameter)) for parameter, part in parts]
        self._place_of = {id(parameter): (part.storage_offset(), part) for parameter, part in self.parts}
        self._known: dict[tuple[int, ...], Places] = {}

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """A block for forward and backward passes, in which operators may add gradients to the vector by themselves.

        They do so where each parameter's ``grad`` is its part of the vector: it does not matter then what comes there
        by autograd. :func:`torch.autograd.grad` would not find such parameters.
        """
        token = _here.set(self)
        try:
            yield
        finally:
            _here.reset(token)

    def places_of(self, parameters: Sequence[Tensor]) -> "Places | None":
        """Where the gradients of these are added; ``None`` unless each has its place, and nobody listens to it."""
        for parameter in parameters:
            place = self._place_of.get(id(parameter))
            if place is None or parameter.grad is not place[1] or not parameter.requires_grad:
                return None
            if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
                return None
        key = tuple(map(id, parameters))
        if key not in self._known:
            start = torch.tensor([self._place_of[one][0] for one in key])
            size = torch.tensor([parameter.numel() for parameter in parameters])
            self._known[key] = Places(tuple(parameters), self.vector, start, size)
        return self._known[key]


class Places(NamedTuple):
    """Parameters, and where their gradients are parts of a vector: each from its start on."""

    parameters: tuple[Tensor, ...]
    vector: Tensor
    start: Tensor
    size: Tensor

    def add(self, values: Tensor) -> None:
        """Values for all parts, side by side."""
        library_for(values).call("add_parts", vector=self.vector, start=self.start, size=self.size, values=values)


def places_of(parameters: Sequence[Tensor]) -> Places | None:
    """Where the gradients of these parameters are gathered, if they are."""
    gradients = _here.get()
    return None if gradients is None else gradients.places_of(parameters)


_here: ContextVar[Gradients | None] = ContextVar("lspe.ops.gathering", default=None)
