"""The optimiser of a protocol, and what it is given."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from lspe.errors import UserError
from lspe.experiment.protocol import OPTIMIZERS, FastProtocol, PaperProtocol
from lspe.own_parts import import_part, make_part
from lspe.training.flat import FlatParameters

_CLASSES = {"adam": "Adam", "adamw": "AdamW", "nadam": "NAdam", "radam": "RAdam", "sgd": "SGD"}


def arrange(network: nn.Module, protocol: PaperProtocol | FastProtocol) -> FlatParameters:
    """The parameters of a network as its optimiser takes them: those that do not decay are a group of their own.

    Our optimisers treat every number alike, and are given vectors; of one's own nobody knows.
    """
    groups = None
    if protocol.decay == "weights":
        groups = [int(not _decays(name, parameter)) for name, parameter in network.named_parameters()]
    return FlatParameters(network.parameters(), groups, flat=protocol.optimizer in OPTIMIZERS)


def _decays(name: str, parameter: nn.Parameter) -> bool:
    return parameter.dim() > 1 and not name.endswith("bias")


def make_optimizer(parameters: FlatParameters, protocol: PaperProtocol | FastProtocol) -> Optimizer:
    """With fresh state."""
    name = protocol.optimizer
    own = name not in OPTIMIZERS
    decays = (protocol.weight_decay, 0.0)
    groups = [{"params": group, "weight_decay": decay} for group, decay in zip(parameters.groups, decays, strict=False)]
    known: dict[str, Any] = {"params": groups, "lr": protocol.lr, "weight_decay": protocol.weight_decay}
    if parameters.tensors[0].device.type in ("cpu", "cuda") and not own:
        known["fused"] = True
    path = name if own else f"torch.optim:{_CLASSES[name]}"
    part = import_part(name) if own else getattr(torch.optim, _CLASSES[name])
    made = make_part(part, path, known, protocol.optimizer_args, "training.protocol.optimizer_args")
    if not isinstance(made, Optimizer):
        raise UserError(f"{path} gives a {type(made).__name__}, not a torch.optim.Optimizer")
    return made
