"""A moving average of a network's weights."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from lspe.training.flat import FlatParameters


class MovingAverage:
    r"""Exponential moving average of all weights and running statistics of a network.

    .. math::
        \bar\theta \leftarrow d\,\bar\theta + (1 - d)\,\theta, \qquad
        d = \min\big(\mathrm{decay}, (1 + t) / (10 + t)\big)

    after step t. The second term keeps the average within about the last tenth of the steps so far, so that a short
    training on a small table is not averaged with its own beginning. BatchNorm's running mean and variance are
    averaged like the weights they belong to; counters are copied.

    Not torch's ``AveragedModel``, which gathers and groups the network's some 300 tensors anew at each step; here they
    are one (:class:`~lspe.training.flat.FlatParameters`).
    """

    def __init__(self, network: nn.Module, parameters: FlatParameters, decay: float) -> None:
        """``parameters`` are those of ``network``."""
        self.decay = decay
        self.steps = 0
        self.network = deepcopy(network).requires_grad_(False).eval()
        statistics_of_average, self._copies = _buffers(self.network)
        self.weights = [average.detach() for average in parameters.like_these(self.network.parameters()).tensors]
        statistics, self._counters = _buffers(network)
        weights = [tensor.detach() for tensor in parameters.tensors]
        self._averages = list(zip([*self.weights, *statistics_of_average], [*weights, *statistics], strict=True))

    def next_share(self) -> float:
        """1 - d of the next step."""
        return 1 - min(self.decay, (1 + self.steps) / (10 + self.steps))

    @torch.no_grad()
    def update(self, *, weights: bool = True) -> None:
        """Take in the network's weights, unless somebody has done that, and its running statistics after a step."""
        pairs = self._averages if weights else self._averages[len(self.weights) :]
        if pairs:
            averages, values = zip(*pairs, strict=True)
            torch._foreach_lerp_(averages, values, self.next_share())
        self.steps += 1
        if self._copies:
            torch._foreach_copy_(self._copies, self._counters)

    def state_dict(self) -> dict[str, Any]:
        """Averaged weights and the number of steps in them."""
        return {"network": self.network.state_dict(), "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state_dict`."""
        self.network.load_state_dict(state["network"])
        self.steps = state["steps"]


def _buffers(network: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """Those that are averaged, and those that are copied; both only as far as they are saved."""
    parameters = {name for name, _ in network.named_parameters(remove_duplicate=False)}
    values = [value for name, value in network.state_dict(keep_vars=True).items() if name not in parameters]
    return [v for v in values if v.is_floating_point()], [v for v in values if not v.is_floating_point()]
