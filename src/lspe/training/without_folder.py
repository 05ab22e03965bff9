"""Train one network on all that is given, without a run folder."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import Callback

from lspe.data import GraphData
from lspe.devices import check_device
from lspe.experiment import build_network
from lspe.experiment.data import fit_to_data
from lspe.experiment.value import Experiment
from lspe.nn import Network
from lspe.training.fitting import objective_for
from lspe.training.loop import run_epochs
from lspe.training.module import TrainingError, TrainingModule
from lspe.training.run import Interface


class _EpochCounter(Callback):
    """Nothing is evaluated and nothing written."""

    def on_train_epoch_end(self, trainer: Any, pl_module: TrainingModule) -> None:
        pl_module.epoch += 1


def fit_in_memory(
    experiment: Experiment, data: GraphData, *, fragments: str = "keep", device: str = "auto"
) -> tuple[Experiment, Interface, Network]:
    """Train on the ``train`` split of ``data``: the experiment as the data completed it, and the trained network.

    There is no validation: it takes a protocol that never asks for it, as the fast one with the last weights. The
    random numbers of the program that calls stay as they were.
    """
    protocol = experiment.training.protocol
    if not protocol.goes_by_steps or protocol.report != "last":
        raise TrainingError(
            "without validation a network can only be trained with a schedule that goes by steps, as that of the fast "
            f"protocol, and its last weights, not with {protocol.schedule!r} and {protocol.report!r}"
        )
    check_device(device)
    experiment = fit_to_data(experiment, data)
    objective = objective_for(experiment, data)
    nothing = data.graphs.select([])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(experiment.seed)
        module = TrainingModule(
            build_network(experiment),
            objective,
            experiment.training,
            data.split("train"),
            nothing,
            seed=experiment.seed,
        )
        run_epochs(module, _EpochCounter(), protocol.max_epochs, device=device)
    return experiment, Interface.of(data, objective, fragments), module.reported_network.cpu().eval()
