"""Train one network on one division of the data, into a run folder."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lspe.data import GraphData
from lspe.data.packed.links import LinkGraphs
from lspe.devices import check_device
from lspe.experiment import build_network
from lspe.experiment.data import fit_to_data
from lspe.experiment.given import with_network
from lspe.experiment.sampling import sampling_in_words
from lspe.experiment.value import CONFIG, OWN, Experiment
from lspe.files import clear_unfinished, write_json, write_text
from lspe.nn import Network
from lspe.nn.descriptors import DescriptorInput
from lspe.nn.norm import synchronise
from lspe.training import checkpoint
from lspe.training.callbacks import LAST, Bookkeeper
from lspe.training.distributed import is_first, wait_for_all
from lspe.training.environment import default_threads
from lspe.training.given import check_network
from lspe.training.lock import hold
from lspe.training.loop import run_epochs, tensorboard_logger
from lspe.training.module import TrainingError, TrainingModule
from lspe.training.objective import Objective
from lspe.training.progress import Progress
from lspe.training.resuming import check_same, differences, reason_it_ended
from lspe.training.run import INTERFACE, REPEATS, SUMMARY, Interface, Run, check_free, go_on_with
from lspe.training.summary import make_summary
from lspe.training.transfer import transfer
from lspe.training.words import Device

if TYPE_CHECKING:
    from lightning.pytorch import Callback
    from lightning.pytorch.loggers import Logger


FEWEST_PARTS = 5
_MOST_TO_STANDARDIZE_BY = 100_000
"""Graphs whose descriptors are in memory together; more do not move mean and standard deviation."""


class Interrupted(KeyboardInterrupt):
    """Training was interrupted; what there is has been saved."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"interrupted; the last whole epoch is saved. Go on with: lspe train {folder} --resume")


def fit(
    experiment: Experiment,
    data: GraphData,
    folder: Path,
    *,
    resume: bool = False,
    network: Network | None = None,
    start: Network | None = None,
    device: Device = "auto",
    devices: int = 1,
    nodes: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
    tensorboard: bool = False,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
    checkpoint_every: float = 5.0,
) -> Run:
    """Train ``experiment`` on ``data`` and leave everything in ``folder``.

    Args:
        experiment: what to train and how; its fold is chosen from ``data`` if it names one.
        data: graphs, targets and splits, with the encoding that the network takes.
        folder: the run folder. It must not hold a run unless ``resume`` is set; one whose training ended before its
            first checkpoint may be used again. No other training is let into it meanwhile.
        resume: go on from the last checkpoint of ``folder``; a finished run is left as it is.
        network: a network to train in the place of the experiment's own, from the weights it has; it stays as it is,
            and a copy is trained. The run predicts and goes on where one like it is given again.
        start: a network whose weights to begin with; see :func:`lspe.training.transfer.transfer` for what may differ.
        device: ``auto`` takes a GPU where there is one.
        devices: processes on this machine that share each batch.
        nodes: machines that do.
        threads: of each process; all cores if not given.
        progress: where to show what happens; nowhere if not given.
        tensorboard: write TensorBoard's files too.
        callbacks: of Lightning, called at its usual moments; they may monitor the columns of metrics.csv, ``val_loss``
            for instance, and end the training. What they remember is not part of a checkpoint.
        loggers: of Lightning (``WandbLogger``, …), which are told the experiment and each row of metrics.csv.
        checkpoint_every: seconds between checkpoints; at an interruption and at the end there is always one.

    """
    check_device(device, devices)
    progress = progress if progress is not None and is_first() else Progress()
    threads = threads or default_threads(devices)
    torch.set_num_threads(threads)
    if network is not None:
        experiment = with_network(experiment, network)
    if experiment.fold is not None:
        data = data.fold(experiment.fold)
    data = seen_by_member(experiment, data)
    experiment = fit_to_data(experiment, data)
    if network is not None:
        check_network(network, experiment, data)
    _check_processes(data, devices * nodes, sampled=bool(experiment.training.neighbours))
    with hold(folder):
        if is_first():
            clear_unfinished(folder)
        state = _open_folder(experiment, folder, resume)
        stopped = "" if state is None else reason_it_ended(experiment, state, folder)
        if stopped and (folder / SUMMARY).is_file():
            return Run(folder, network)

        objective = objective_for(experiment, data)
        module = fresh_module(experiment, data, objective, network)
        keeper = Bookkeeper(
            folder,
            experiment.task.metric,
            progress,
            threads=threads,
            every=checkpoint_every,
            best_by=experiment.training.best_by,
        )
        notes = [note for note in [sampling_in_words(experiment, data)] if note]
        notes += [] if start is None else _begin_with(start, module.network)
        if state is not None:
            with checkpoint.in_use(folder / LAST):
                module.restore(state)
                keeper.restore(state)
                notes += differences(state, threads, devices * nodes)
            keeper.stopped = stopped
        then = go_on_with(folder)
        if is_first():
            write_text(folder / CONFIG, f"{REPEATS} this run\n{experiment.to_yaml(folder)}", then=then)
            fragments = "keep" if experiment.table is None else experiment.table.fragments
            write_json(folder / INTERFACE, Interface.of(data, objective, fragments).to_dict(), then=then)
        if not stopped:
            (folder / SUMMARY).unlink(missing_ok=True)
            loggers = [*loggers, tensorboard_logger(folder)] if tensorboard else loggers
            for logger in loggers:
                logger.log_hyperparams(experiment.model_dump(mode="json"))
            hardware = {"device": device, "devices": devices, "nodes": nodes}
            _train(module, keeper, experiment, notes, callbacks=callbacks, loggers=loggers, **hardware)
        wait_for_all()
        summary = make_summary(Run(folder, network), module, data, keeper)
        if is_first():
            write_json(folder / SUMMARY, summary, then=then)
        return Run(folder, network)


def _open_folder(experiment: Experiment, folder: Path, resume: bool) -> dict[str, Any] | None:
    """The last checkpoint of a run that goes on; a new run is refused where it would write over another."""
    if not resume:
        if is_first():
            check_free(folder)
        return None
    if not (folder / CONFIG).is_file():
        return None
    check_same(Run(folder).config, experiment, folder)
    return checkpoint.load(folder / LAST) if (folder / LAST).exists() else None


def _check_processes(data: GraphData, processes: int, *, sampled: bool) -> None:
    """Each process takes its part of every batch, and has to have one; a sample is shared by its nodes."""
    train = data.split("train")
    count, what = (int(train.known_targets.sum()), "node") if sampled else (len(train), "graph")
    if processes > max(count, 1):
        raise TrainingError(
            f"{data.name} has {count} training {what if count == 1 else f'{what}s'}, too few for {processes} "
            "processes that share each batch: leave --devices and --nodes out"
        )


def seen_by_member(experiment: Experiment, data: GraphData) -> GraphData:
    """The data as one network of an ensemble sees them; as they are where it is the only one.

    How a benchmark is divided is part of it: all of its networks validate on the same graphs.
    """
    if experiment.member is None:
        return data
    if experiment.dataset == OWN:
        data = data.member(experiment.member, parts_among(experiment.training.members or 1))
    return data.with_descriptors(experiment.model.beside)


def parts_among(members: int) -> int:
    """Into how many parts that which is not tested is divided: none is so large that little is left to learn from."""
    return max(FEWEST_PARTS, members)


def objective_for(experiment: Experiment, data: GraphData) -> Objective:
    """What is to be learned, as the targets of the training split complete it."""
    y = torch.from_numpy(data.split("train").y.copy())
    return Objective.of(
        experiment.task, y, standardize=experiment.training.standardize, balance=experiment.training.balance
    )


def fresh_module(
    experiment: Experiment, data: GraphData, objective: Objective, given: Network | None = None
) -> TrainingModule:
    """The network of an experiment with fresh weights, or a copy of the one that was given, and what trains it."""
    train, val = data.split("train"), data.split("val")
    for name, part in (("training", train), ("validation", val)):
        if not part.known_targets.any():
            raise TrainingError(f"{data.name} has no {name} {data.level}s")
    if isinstance(train, LinkGraphs):
        train = replace(train, hidden_share=experiment.training.hidden_share)
    torch.manual_seed(experiment.seed)
    network = build_network(experiment) if given is None else deepcopy(given)
    if experiment.training.sync_batch_norm:
        synchronise(network)
    if isinstance(network.descriptors, DescriptorInput):
        some = np.linspace(0, len(train) - 1, min(len(train), _MOST_TO_STANDARDIZE_BY)).astype(np.int64)
        network.descriptors.standardize_by(torch.from_numpy(train.select(some).column("descriptors").copy()))
    return TrainingModule(network, objective, experiment.training, train, val, seed=experiment.seed)


def _begin_with(start: Network, network: Network) -> list[str]:
    """Take the weights of another network; what to say about it."""
    fresh = transfer(start, network)
    return [f"not taken from the other run, where they have another shape: {', '.join(fresh)}"] if fresh else []


def _train(
    module: TrainingModule,
    keeper: Bookkeeper,
    experiment: Experiment,
    notes: list[str],
    **options: Any,
) -> None:
    protocol = module.protocol
    if is_first():
        title = f"{experiment.name}  seed {experiment.seed}" + (
            "" if experiment.fold is None else f"  fold {experiment.fold}"
        )
        if experiment.member is not None:
            title += f"  network {experiment.member + 1} of {experiment.training.members}"
        keeper.progress.begin(title, keeper.metric, module.epoch, protocol.max_epochs, len(module.loader))
        for note in notes:
            keeper.progress.note(note)
    try:
        run_epochs(module, keeper, protocol.max_epochs - module.epoch, **options)
    except SystemExit:
        if keeper.interrupted is None:
            raise
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise Interrupted(keeper.folder) from None
