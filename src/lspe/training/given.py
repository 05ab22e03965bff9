"""A network that was given as an object, looked at before it is trained."""

from __future__ import annotations

import numpy as np
import torch

from lspe.data import GraphData
from lspe.experiment.value import Experiment
from lspe.nn import Network
from lspe.training.module import TrainingError


def check_network(network: Network, experiment: Experiment, data: GraphData) -> None:
    """Say in words where a network is not one for these data; it is tried on two of their graphs."""
    task = experiment.task
    if network.readout != experiment.model.readout:
        raise TrainingError(
            f"the network reads out {network.readout!r}, but the targets are those of {task.level}s: "
            f"build it with readout={experiment.model.readout!r}"
        )
    graphs = data.split("train")
    batch = graphs.batch(np.arange(min(2, len(graphs))))
    was_training = network.training
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            output = network.eval()(batch)
    except Exception as error:  # of whatever parts somebody put together
        raise TrainingError(
            f"the network fails on two graphs of {data.name}: {type(error).__name__}: {error}. Their features are "
            f"{experiment.features.model_dump(exclude={'vocabulary', 'unknown'})}"
        ) from error
    finally:
        network.train(was_training)
    if output.size(-1) != task.outputs:
        raise TrainingError(
            f"the network has {output.size(-1)} outputs, but {data.name} is a {task.kind} task with {task.outputs}: "
            f"give it a Head(…, outputs={task.outputs})"
        )
