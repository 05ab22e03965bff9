"""Clipping, Adam and the moving average of weights in one pass over the numbers.

PyTorch needs one for each, and its optimiser looks at all of its settings anew in each step: with small batches that
takes a twentieth of a step. State and settings stay those of PyTorch's optimiser.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, AdamW, Optimizer
from torch.optim import optimizer as torch_optimizer

from lspe.ops import fusible
from lspe.ops.fused.library import library_for, threads
from lspe.training.average import MovingAverage
from lspe.training.flat import FlatParameters

MOST_GROUPS = 2
"""As many as ``struct adam`` in csrc/api.h has room for."""


@torch.no_grad()
def step_at_once(
    optimizer: Optimizer,
    parameters: FlatParameters,
    clip: float | None,
    average: MovingAverage | None,
    *,
    forget: bool = False,
) -> bool:
    """Do what clipping, the optimiser and the average would do with gradients that have been gathered.

    ``False``, and nothing has happened, where the optimiser is no ordinary Adam of vectors, somebody listens to it, or
    it has not made its state yet. With ``forget`` the next step has its gradients forgotten already.
    """
    if not _is_served(optimizer, parameters):
        return False
    averages = [None] * len(parameters.tensors) if average is None else average.weights
    groups = zip(parameters.tensors, averages, optimizer.param_groups, strict=True)
    library_for(parameters.gradient).call(
        "adam_step",
        threads=threads(),
        groups=len(parameters.tensors),
        forget=forget,
        gradient=parameters.gradient,
        clip=0.0 if clip is None else clip,
        share=0.0 if average is None else average.next_share(),
        group=[_group(optimizer, *group) for group in groups],
    )
    parameters.are_forgotten = forget
    if average is not None:
        average.update(weights=False)
    return True


def _group(optimizer: Optimizer, weight: Tensor, average: Tensor | None, group: dict[str, Any]) -> dict[str, Any]:
    """What is done with a vector in this step, which is counted."""
    state = optimizer.state[weight]
    state["step"] += 1
    step = float(state["step"])
    decoupled = isinstance(optimizer, AdamW)
    (beta1, beta2), decay = group["betas"], group["weight_decay"]
    return {
        "rate": float(group["lr"]),
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": group["eps"],
        "decay": 0.0 if decoupled else decay,
        "decoupled_decay": decay if decoupled else 0.0,
        "correction1": 1 - beta1**step,
        "correction2": 1 - beta2**step,
        "weight": weight,
        "first": state["exp_avg"],
        "second": state["exp_avg_sq"],
        "average": average,
    }


def _is_served(optimizer: Optimizer, parameters: FlatParameters) -> bool:
    tensors = parameters.tensors
    if type(optimizer) not in (Adam, AdamW) or not parameters.is_flat or len(tensors) > MOST_GROUPS:
        return False
    listeners = (
        optimizer._optimizer_step_pre_hooks,
        optimizer._optimizer_step_post_hooks,
        torch_optimizer._global_optimizer_pre_hooks,
        torch_optimizer._global_optimizer_post_hooks,
    )
    unusual = any(group["amsgrad"] or group["maximize"] for group in optimizer.param_groups)
    has_state = all("exp_avg" in optimizer.state.get(tensor, ()) for tensor in tensors)
    return not any(listeners) and not unusual and has_state and fusible(*tensors)
