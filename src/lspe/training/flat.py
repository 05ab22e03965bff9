"""The parameters of a network side by side in one vector.

An optimiser that is given three hundred small tensors spends its time on their number; given one vector, a step is one
pass over it, and so are clipping and averaging.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class FlatParameters:
    """Makes parameters in the CPU's memory views of one vector, which is what an optimiser is given.

    On other devices, where an optimiser works on all tensors at once, they stay as they are.

    Attributes:
        tensors: the vector ``[P]`` of all parameters, or the parameters themselves.

    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.tensors = self.parameters
        self._sizes = [parameter.numel() for parameter in self.parameters]
        self._gradient: Tensor | None = None
        if all(parameter.device.type == "cpu" for parameter in self.parameters):
            vector = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in self.parameters]))
            self.tensors = [vector]
            self._gradient = torch.zeros_like(vector)
            parts = self._gradient.split(self._sizes)
            self._parts = [part.view_as(parameter) for part, parameter in zip(parts, self.parameters, strict=True)]
            for parameter, part in zip(self.parameters, vector.detach().split(self._sizes), strict=True):
                parameter.data = part.view_as(parameter)

    def forget_gradients(self) -> None:
        """Begin a step."""
        for parameter in self.parameters:
            parameter.grad = None

    def gather_gradients(self) -> None:
        """Put the gradients of all parameters side by side, zeros for those that have none."""
        if self._gradient is None:
            return
        parts: list[Tensor] = []
        gradients: list[Tensor] = []
        for part, parameter in zip(self._parts, self.parameters, strict=True):
            if parameter.grad is None:
                part.zero_()
            else:
                parts.append(part)
                gradients.append(parameter.grad)
        torch._foreach_copy_(parts, gradients)
        self.tensors[0].grad = self._gradient

    def state_of(self, optimizer: dict[str, Any]) -> dict[str, Any]:
        """The state of an optimiser of the tensors, also where it was one of single parameters when it was saved."""
        states = optimizer["state"]
        [group] = optimizer["param_groups"]
        if len(group["params"]) == len(self.tensors):
            return optimizer
        if len(group["params"]) != len(self._sizes):
            raise ValueError(
                f"the optimizer's state is that of {len(group['params'])} tensors, not of {len(self._sizes)}"
            )
        joined: dict[str, Any] = {}
        if states:
            first = next(iter(states.values()))
            joined = {name: self._joined(states, name, value) for name, value in first.items()}
        return {"state": {0: joined} if joined else {}, "param_groups": [{**group, "params": [0]}]}

    def _joined(self, states: dict[int, dict[str, Any]], name: str, like: Tensor) -> Tensor:
        """A value of each parameter side by side; those that never had a gradient have none. Counts are the same."""
        if like.dim() == 0:
            return max(state[name] for state in states.values())
        return torch.cat(
            [
                states[number][name].flatten() if number in states else like.new_zeros(size)
                for number, size in enumerate(self._sizes)
            ]
        )
