"""The parameters of a network side by side in one vector.

An optimiser that is given three hundred small tensors spends its time on their number; given one vector, a step is one
pass over it, and so are clipping and averaging. Gradients are parts of one vector too, and are added up there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from lspe.ops.fused.gathering import Gradients


class FlatParameters:
    """Makes parameters in the CPU's memory views of one vector per group, which is what an optimiser is given.

    On other devices, where an optimiser works on all tensors at once, they stay as they are.

    Args:
        parameters: in their order.
        groups: the group of each, 0, 1, …; all in one if not given.
        flat: whether vectors are made at all; not for optimisers that look at the shape of a parameter.

    Attributes:
        groups: of each group the vector of its parameters, or the parameters themselves.
        is_flat: whether they are vectors.
        are_forgotten: whether gradients are zeros, each in its place, since the last step.

    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], groups: Sequence[int] | None = None, *, flat: bool = True
    ) -> None:
        self.parameters = list(parameters)
        self._group_of = [0] * len(self.parameters) if groups is None else list(groups)
        self._members = [
            [parameter for parameter, of in zip(self.parameters, self._group_of, strict=True) if of == group]
            for group in range(max(self._group_of, default=0) + 1)
        ]
        self.groups = self._members
        self.is_flat = flat and all(parameter.device.type == "cpu" for parameter in self.parameters)
        self.are_forgotten = False
        self._gradients: Gradients | None = None
        if self.is_flat:
            self.groups = [[_side_by_side(members)] for members in self._members]
            self._gradients = Gradients([parameter for members in self._members for parameter in members])

    @property
    def tensors(self) -> list[nn.Parameter]:
        """Those of all groups."""
        return [tensor for group in self.groups for tensor in group]

    @property
    def gradient(self) -> Tensor:
        """Of all parameters, group by group, where they are vectors."""
        assert self._gradients is not None
        return self._gradients.vector

    def like_these(self, parameters: Iterable[nn.Parameter]) -> FlatParameters:
        """Other parameters of the same shapes, arranged in the same way."""
        return FlatParameters(parameters, self._group_of, flat=self.is_flat)

    def forget_gradients(self) -> None:
        """Begin a step."""
        if self._gradients is None:
            for one in self.parameters:
                one.grad = None
            return
        if self.are_forgotten:
            self.are_forgotten = False
            return
        self._gradients.vector.zero_()
        for parameter, part in self._gradients.parts:
            if parameter.grad is not part:
                parameter.grad = part

    def gathered(self) -> AbstractContextManager[None]:
        """A block for forward and backward passes, in which layers may add gradients to the vector themselves."""
        return nullcontext() if self._gradients is None else self._gradients.gathered()

    def gather_gradients(self) -> None:
        """Give the optimiser the gradients of all parameters, also where somebody has put others in their place."""
        if self._gradients is None:
            return
        for parameter, part in self._gradients.parts:
            gradient = parameter.grad
            if gradient is part:
                continue
            if gradient is None:
                part.zero_()
            else:
                part.copy_(gradient)
            parameter.grad = part
        sizes = [tensor.numel() for tensor in self.tensors]
        for tensor, part in zip(self.tensors, self._gradients.vector.split(sizes), strict=True):
            tensor.grad = part

    def clip(self, most: float) -> None:
        """Scale gradients, which are gathered, so that their norm is at most this, as PyTorch does."""
        if self._gradients is None:
            torch.nn.utils.clip_grad_norm_(self.tensors, most)
            return
        gradient = self._gradients.vector
        scale = most / (torch.linalg.vector_norm(gradient) + 1e-6)
        if scale < 1:
            gradient *= scale

    def state_of(self, optimizer: dict[str, Any]) -> dict[str, Any]:
        """The state of an optimiser of the groups, also where it was one of single parameters when it was saved."""
        saved = [len(group["params"]) for group in optimizer["param_groups"]]
        if saved == [len(group) for group in self.groups]:
            return optimizer
        if saved != [len(members) for members in self._members]:
            raise ValueError(
                f"the optimizer's state is that of {sum(saved)} tensors in {len(saved)} groups, not of "
                f"{len(self.parameters)} in {len(self._members)}"
            )
        states: dict[int, dict[str, Any]] = {}
        for number, (group, members) in enumerate(zip(optimizer["param_groups"], self._members, strict=True)):
            known = [optimizer["state"].get(key) for key in group["params"]]
            first = next((state for state in known if state), None)
            if first is not None:
                states[number] = {name: _joined(known, name, value, members) for name, value in first.items()}
        groups = [{**group, "params": [number]} for number, group in enumerate(optimizer["param_groups"])]
        return {"state": states, "param_groups": groups}


def _side_by_side(parameters: Sequence[nn.Parameter]) -> nn.Parameter:
    """A vector of which these are parts from now on."""
    vector = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in parameters]))
    sizes = [parameter.numel() for parameter in parameters]
    for parameter, part in zip(parameters, vector.detach().split(sizes), strict=True):
        parameter.data = part.view_as(parameter)
    return vector


def _joined(
    states: Sequence[dict[str, Any] | None], name: str, like: Tensor, members: Sequence[nn.Parameter]
) -> Tensor:
    """A value of each parameter side by side; those that never had a gradient have none. Counts are the same."""
    if like.dim() == 0:
        return max(state[name] for state in states if state)
    return torch.cat(
        [
            state[name].flatten() if state else like.new_zeros(parameter.numel())
            for state, parameter in zip(states, members, strict=True)
        ]
    )
