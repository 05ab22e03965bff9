"""What is about to be trained, in words, before it starts: so that a wrong guess costs seconds, not an hour."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import torch

from lspe.data import GraphData
from lspe.errors import UserError
from lspe.experiment.data import fit_to_data
from lspe.experiment.sampling import steps_per_epoch
from lspe.experiment.value import Experiment
from lspe.nn import Network
from lspe.training.evaluation import loss_sums, mean_loss
from lspe.training.fitting import fresh_module, parts_among
from lspe.training.given import check_network
from lspe.training.module import TrainingModule
from lspe.training.objective import Objective
from lspe.training.progress import clock

_MEMBERS = ((3_000, 5), (15_000, 3), (50_000, 2))
"""Up to so many molecules so many networks, if nobody says: they are trained one after the other."""

_FOREST_SECONDS = {"regression": 0.004, "binary": 0.008, "multiclass": 0.008}
_FOREST_AT_LEAST = 2.0
"""Growing a forest for a target takes the processor about so long, per molecule and at all."""

_STEPS_TRIED = 3
_TURNS = 10
_ENOUGH_TURNS = 3
_ENOUGH_SECONDS = 3.0
"""All threads and one take so many turns when they are compared; fewer if steps take long."""
_WORTH_THREADS = 0.9
"""All threads are used where a step takes less than this part of the time that one thread takes."""


def members_for(experiment: Experiment, data: GraphData, *, processes: int = 1) -> Experiment:
    """Choose how many networks are trained, where that is left to the size of the table; one by several processes."""
    training = experiment.training
    if training.members is not None:
        if training.members > 1 and processes > 1:
            raise UserError("several members are trained one after the other by one process: leave out --devices")
        return experiment
    several = experiment.seeds or (data.folds and experiment.fold is None) or processes > 1
    members = 1
    if not several:
        learned_from = np.concatenate([data.splits["train"], data.splits["val"]])
        apart = learned_from if data.groups is None else np.unique(data.groups[learned_from])
        members = next((number for most, number in _MEMBERS if len(learned_from) <= most), 1)
        if len(apart) < 2 * parts_among(members):
            members = 1
    return experiment.model_copy(update={"training": training.model_copy(update={"members": members})})


def threads_for(experiment: Experiment, data: GraphData, most: int) -> int:
    """One thread, unless ``most`` of them are clearly faster in a few steps of training.

    Small batches leave a second thread little to do, and on a busy machine the first one waits for it. They take turns,
    of which the first step, which finds its memory elsewhere, does not count. What counts is how long the quicker steps
    take: a busy moment passes, and training lasts.
    """
    if most == 1:
        return 1
    fitted, seen = _as_trained(experiment, data)
    objective = Objective(fitted.task)
    before = torch.get_num_threads()
    took: dict[int, list[float]] = {most: [], 1: []}
    with torch.random.fork_rng(devices=[]):
        module = fresh_module(fitted, seen, objective)
        try:
            began = time.perf_counter()
            for turn, (count, times) in itertools.product(range(_TURNS), took.items()):
                if turn >= _ENOUGH_TURNS and time.perf_counter() - began > _ENOUGH_SECONDS:
                    break
                torch.set_num_threads(count)
                _step(module, objective, turn)
                times.append(_step(module, objective, turn))
        finally:
            torch.set_num_threads(before)
    all_of_them, one = (np.quantile(times, 0.25) for times in took.values())
    return most if all_of_them < _WORTH_THREADS * one else 1


def announce(experiment: Experiment, data: GraphData, network: Network | None = None) -> str:
    """Columns, task, parts, what is trained (a network that was given, if any), and about how long it will take."""
    notes = () if data.report is None else data.report.notes
    lines = [
        _columns(experiment, data),
        _values(data),
        *notes,
        _parts(experiment, data),
        _models(experiment, data, network),
    ]
    return "\n".join(line for line in lines if line)


def _columns(experiment: Experiment, data: GraphData) -> str:
    targets = ", ".join(repr(name) for name in data.task_names)
    if experiment.table is None:
        return f"{data.name}: learning {targets}"
    extra = "".join(f", {name!r}" for name in data.extra_names)
    return f"{data.name}: molecules in {data.smiles_column!r}{extra}, learning {targets}"


def _values(data: GraphData) -> str:
    y = data.graphs.graph.get("y")
    if y is None:  # labels of nodes or edges
        return f"task {data.task}"
    if data.task == "multiclass":
        counts = np.bincount(y.reshape(-1), minlength=data.num_outputs).tolist()
        classes = ", ".join(f"{name} {count:,}" for name, count in zip(data.class_names, counts, strict=True))
        return f"task multiclass, {data.num_outputs} classes: {classes}"
    lines = []
    for name, column in zip(data.task_names, y.T, strict=True):
        known = column[~np.isnan(column)]
        if data.task == "binary":
            no, yes = data.class_names or ("0", "1")
            lines.append(f"{name}: {len(known):,} labels, {int(known.sum()):,} of them {yes} (the others {no})")
        else:
            spread = f"{known.min():.4g} to {known.max():.4g}, mean {known.mean():.4g}"
            lines.append(f"{name}: {len(known):,} numbers, {spread}")
    shown = lines if len(lines) <= 12 else [*lines[:12], f"and {len(lines) - 12} more targets"]
    return f"task {data.task}; " + "\n  ".join(shown)


def _parts(experiment: Experiment, data: GraphData) -> str:
    how = f", divided {data.division}" if data.division else ""
    if data.folds and experiment.fold is None:
        return f"{len(data.folds)} folds of {len(data.graphs):,} molecules{how}"
    splits = (data.folds[experiment.fold] if experiment.fold is not None else None) or data.splits
    sizes = ", ".join(f"{len(part):,} {name}" for name, part in splits.items())
    return f"parts: {sizes}{how}"


def _models(experiment: Experiment, data: GraphData, network: Network | None) -> str:
    members = experiment.training.members or 1
    fitted, seen = _as_trained(experiment, data)
    epochs = fitted.training.protocol.max_epochs
    beside = "" if experiment.model.beside == "none" else f" with {experiment.model.beside} descriptors"
    if members > 1 and experiment.model.descriptors is None and data.task != "regression":
        beside = f", every second with {experiment.model.beside} descriptors"
    what = f"{members} networks" if members > 1 else "one network"
    text = f"training {what} of at most {epochs} epochs{beside}"
    if members > 1:
        text += ", each validated on another part of train and val"
    began, worked = time.perf_counter(), time.process_time()
    seconds = members * epochs * seconds_per_epoch(fitted, seen, network)
    busy = max(1.0, (time.perf_counter() - began) / max(time.process_time() - worked, 1e-3))
    if experiment.training.forest:
        text += f", and a forest beside {'them' if members > 1 else 'it'}"
        one = len(data.task_names) * (_FOREST_AT_LEAST + len(data.graphs) * _FOREST_SECONDS[data.task])
        seconds += (members + 1) * one * busy  # others may use the processor, too
    return f"{text}: about {clock(seconds)} or less"


def _as_trained(experiment: Experiment, data: GraphData) -> tuple[Experiment, GraphData]:
    """The experiment and the data of the first network that is trained."""
    if data.folds:
        data = data.fold(experiment.fold or 0)
    members = experiment.training.members or 1
    seen = data.member(0, parts_among(members)) if members > 1 else data
    return fit_to_data(experiment, seen), seen


def seconds_per_epoch(experiment: Experiment, data: GraphData, network: Network | None = None) -> float:
    """Measured on a few steps of training."""
    objective = Objective(experiment.task)
    if network is not None:
        check_network(network, experiment, data)
    with torch.random.fork_rng(devices=[]):
        module = fresh_module(experiment, data, objective, network)
        took = [_step(module, objective, number) for number in range(_STEPS_TRIED)]
    steps = steps_per_epoch(experiment, data)
    return steps * float(np.median(took)) * 1.2  # validation, optimizer


def _step(module: TrainingModule, objective: Objective, number: int) -> float:
    graphs: Any = module.loader.graphs
    size = min(module.loader.batch_size, len(graphs))
    batch = graphs.batch(np.arange(size) + (number * size) % (len(graphs) - size + 1))
    started = time.perf_counter()
    sums = loss_sums(module.network.train()(batch), None, batch, objective, None)
    mean_loss(sums, sums.detach(), None).backward()
    return time.perf_counter() - started
