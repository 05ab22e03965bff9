"""Whether a network learns from whole graphs or from samples of neighbourhoods, and how many steps an epoch has."""

import math

import torch

from lspe.config import ConfigError
from lspe.data import GraphData
from lspe.experiment.catalogue import build_network
from lspe.experiment.value import Experiment
from lspe.nn.blocks import why_not_local

MOST_AT_ONCE = 1_000_000
"""Nodes and edges of a graph up to which it is learned from as a whole."""

_NEIGHBOURS = (10, 5, 3, 2)
"""How many edges into a node are drawn, from the targets outwards; one each further out."""


def with_sampling(experiment: Experiment, data: GraphData) -> Experiment:
    """The experiment with the numbers of neighbours to draw where targets are those of nodes of a large graph.

    Samples that are asked for, but cannot be learned from, are refused.
    """
    training = experiment.training
    if training.neighbours:
        _check(experiment, data)
        return experiment
    is_large = (data.graphs.num_nodes + data.graphs.num_edges).max(initial=0) > MOST_AT_ONCE
    if training.neighbours is not None or not is_large or _why_not(experiment, data):
        return experiment
    layers = experiment.model.layers
    neighbours = (_NEIGHBOURS + (1,) * layers)[:layers]
    return experiment.model_copy(update={"training": training.model_copy(update={"neighbours": neighbours})})


def steps_per_epoch(experiment: Experiment, data: GraphData) -> int:
    """How often the weights change in an epoch."""
    training, train = experiment.training, data.split("train")
    if training.neighbours:
        batches = math.ceil(int(train.known_targets.sum()) / training.nodes_per_step)
    else:
        batches = math.ceil(len(train) / training.batch_size)
    return math.ceil(batches / training.accumulate)


def sampling_in_words(experiment: Experiment, data: GraphData) -> str:
    """What is said before training; '' where whole graphs are learned from."""
    training = experiment.training
    if not training.neighbours:
        return ""
    largest = int(data.graphs.num_nodes.max())
    numbers = ", ".join(map(str, training.neighbours))
    return (
        f"a graph of {largest:,} nodes: each step learns from {training.nodes_per_step:,} nodes and a sample of their "
        f"neighbourhood, from there outwards at most {numbers} edges into each node; scores are those of the whole "
        "graph (training.nodes_per_step, training.neighbours)"
    )


def _check(experiment: Experiment, data: GraphData) -> None:
    neighbours, layers = experiment.training.neighbours or (), experiment.model.layers
    if len(neighbours) != layers:
        raise ConfigError(
            f"training.neighbours={list(neighbours)} has {len(neighbours)} numbers for model.layers={layers}: give one "
            "for each layer"
        )
    if reason := _why_not(experiment, data):
        raise ConfigError(
            f"training.neighbours={list(neighbours)}: {reason}. Learn from whole graphs with training.neighbours=[], "
            "or choose another network"
        )


def _why_not(experiment: Experiment, data: GraphData) -> str:
    """Why samples of neighbourhoods cannot be learned from; '' if they can."""
    if data.level != "node":
        return f"samples are drawn around nodes, and targets are those of {data.level}s"
    if experiment.training.positional_loss is not None:
        return "the positional loss is that of whole graphs (training.positional_loss)"
    if experiment.model.normalize_positions:
        return "positions are normalised over whole graphs (model.normalize_positions)"
    with torch.device("meta"):
        return why_not_local(build_network(experiment))
