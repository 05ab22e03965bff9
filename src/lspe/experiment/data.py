"""The data of an experiment, and what these decide of it."""

from typing import Any

import numpy as np

from lspe.config import ConfigError
from lspe.data import BatchLoader, GraphData, PackedGraphs, load_benchmark
from lspe.data.words import DescriptorKind, Level, TaskKind
from lspe.experiment.network import ModelConfig
from lspe.experiment.protocol import FEWEST_EPOCHS
from lspe.experiment.sampling import steps_per_epoch, with_sampling
from lspe.experiment.task import Task, scores_for
from lspe.experiment.value import OWN, Experiment
from lspe.features import Features, table_sizes
from lspe.locations import Root
from lspe.nn.readout import READOUTS, Readout, level_of

DROPOUT = {"numbers": (0.1, 0.0), "classes": (0.3, 0.3)}
"""In the layers and in the head, where it is left to the task; docs/benchmarks.md says what was tried."""


def load_data(experiment: Experiment, root: Root = None, *, processes: int | None = None) -> GraphData:
    """The data of an experiment, with the encodings its network takes; folds are not chosen yet."""
    wanted = experiment.model.beside
    kinds: tuple[DescriptorKind, ...] = ("rdkit", "morgan") if experiment.training.forest else ()
    if wanted != "none" and not kinds:
        kinds = (wanted,)
    if experiment.table is not None:
        data = experiment.table.load(processes, descriptors=kinds)
    elif experiment.graphs is not None:
        data = experiment.graphs.load()
    elif experiment.dataset == OWN:
        raise ConfigError(
            f"{experiment.name} is for one's own data: name the table with --data table.csv, or give lspe.train graphs"
        )
    else:
        data = load_benchmark(experiment.dataset, root, descriptors=kinds)
    return data.with_encodings(experiment.model.encodings).with_descriptors(wanted)


def fit_to_data(experiment: Experiment, data: GraphData) -> Experiment:
    """Fill in what the data decide: the task of one's own data, feature tables made from them, dropout, PNA's δ."""
    experiment = _with(experiment, "features", _features(experiment, data.features))
    if experiment.dataset == OWN:
        scores = scores_for(data.task, data.level)
        metric = experiment.task.metric if experiment.task.metric in scores else scores[0]
        task = Task(level=data.level, kind=data.task, outputs=data.num_outputs, metric=metric)
        experiment = _with(experiment, "task", task)
        readout = _readout(data.level, experiment.model.readout)
        experiment = _with(experiment, "model", experiment.model.model_copy(update={"readout": readout}))
    task = experiment.task
    if (data.level, data.task, data.num_outputs) != (task.level, task.kind, task.outputs):
        raise ConfigError(
            f"{experiment.name} is for a {task.kind} task of {task.level}s with {task.outputs} outputs, but "
            f"{data.name} is a {data.task} task of {data.level}s with {data.num_outputs}: set task.level, task.kind "
            "and task.outputs to these"
        )
    scores = scores_for(data.task, data.level)
    if experiment.task.metric not in scores:
        raise ConfigError(
            f"{experiment.name}: a {data.task} task has no task.metric {experiment.task.metric!r}: "
            f"choose among {', '.join(scores)}"
        )
    if data.extra_names:
        wider = experiment.model.model_copy(update={"extra": len(data.extra_names)})
        experiment = _with(experiment, "model", wider)
    experiment = _with(experiment, "model", _with_dropout(experiment.model, data.task))
    model = experiment.model
    if model.name == "pna" and model.needs_delta:
        delta = mean_log_degree(data.split("train"))
        experiment = _with(experiment, "model", model.model_copy(update={"delta": delta}))
    return _with_epochs_by_steps(with_sampling(experiment, data), data)


def _with_dropout(model: ModelConfig, task: TaskKind) -> ModelConfig:
    """With a number where dropout is left to the task."""
    chosen = dict(
        zip(("dropout", "head_dropout"), DROPOUT["numbers" if task == "regression" else "classes"], strict=True)
    )
    return model.model_copy(update={name: part for name, part in chosen.items() if getattr(model, name) is None})


def _with_epochs_by_steps(experiment: Experiment, data: GraphData) -> Experiment:
    """As many epochs as make up the steps of the protocol."""
    protocol = experiment.training.protocol
    if protocol.max_steps is None:
        return experiment
    steps = steps_per_epoch(experiment, data)
    epochs = min(protocol.max_epochs, max(FEWEST_EPOCHS, protocol.max_steps // max(steps, 1)))
    shorter = protocol.model_copy(update={"max_epochs": epochs})
    return _with(experiment, "training", experiment.training.model_copy(update={"protocol": shorter}))


def _readout(level: Level, wanted: Readout) -> Readout:
    """What gives an output for each target of a level."""
    if level == "graph":
        return "mean" if level_of(wanted) != "graph" else wanted
    return READOUTS[level]


def mean_log_degree(graphs: PackedGraphs) -> float:
    """PNA's δ: the mean of log(in-degree + 1) over all nodes of ``graphs``."""
    total, nodes = 0.0, 0
    for batch in BatchLoader(graphs, 4096):
        degree = np.bincount(batch.edge_index[1].numpy(), minlength=int(batch.num_nodes))
        total += float(np.log(degree + 1.0).sum())
        nodes += len(degree)
    return total / max(nodes, 1)


def _features(experiment: Experiment, given: Features) -> Features:
    """The feature tables the network needs for these data; a difference to the preset is an error."""
    wanted, found = experiment.features, table_sizes(given)
    if experiment.graphs is not None:
        return found
    if wanted.kind == given.kind == "ogb":
        return wanted  # how many chirality tags its table has is the network's own matter
    if wanted.kind == given.kind == "categorical" and given.unknown:
        return found  # the vocabulary was made from the data
    if table_sizes(wanted) != found:
        raise ConfigError(
            f"{experiment.name} takes features {_sizes(wanted)}, but the data {experiment.dataset} have "
            f"{_sizes(found)}: set features to these"
        )
    return wanted


def _sizes(features: Features) -> dict[str, Any]:
    return features.model_dump(exclude={"vocabulary", "unknown"})


def _with(experiment: Experiment, field: str, value: Any) -> Experiment:
    return experiment.model_copy(update={field: value})
