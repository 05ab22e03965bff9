"""Train one network on one division of the data, into a run folder."""

from __future__ import annotations

import logging
import signal
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lspe.data import GraphData
from lspe.data.packed.targets import is_known
from lspe.devices import check_device
from lspe.experiment import build_network
from lspe.experiment.data import fit_to_data
from lspe.experiment.value import CONFIG, Experiment
from lspe.files import write_json, write_text
from lspe.nn import Network
from lspe.nn.descriptors import DescriptorInput
from lspe.nn.norm import synchronise
from lspe.training import checkpoint
from lspe.training.callbacks import LAST, Bookkeeper, epoch_of_lowest_loss
from lspe.training.distributed import is_first, wait_for_all
from lspe.training.environment import default_threads
from lspe.training.lock import hold
from lspe.training.module import TrainingError, TrainingModule
from lspe.training.objective import Objective
from lspe.training.progress import Progress
from lspe.training.run import INTERFACE, REPEATS, Interface, Run, RunError, check_free, go_on_with
from lspe.training.stopping import reason_to_stop
from lspe.training.summary import make_summary
from lspe.training.transfer import transfer
from lspe.training.words import Device

if TYPE_CHECKING:
    from lightning.pytorch import Callback


FEWEST_PARTS = 5


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
    start: Network | None = None,
    device: Device = "auto",
    devices: int = 1,
    nodes: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
    tensorboard: bool = False,
    checkpoint_every: float = 5.0,
) -> Run:
    """Train ``experiment`` on ``data`` and leave everything in ``folder``.

    Args:
        experiment: what to train and how; its fold is chosen from ``data`` if it names one.
        data: graphs, targets and splits, with the encoding that the network takes.
        folder: the run folder. It must not hold a run unless ``resume`` is set; one whose training ended before its
            first checkpoint may be used again. No other training is let into it meanwhile.
        resume: go on from the last checkpoint of ``folder``; a finished run is left as it is.
        start: a network whose weights to begin with; see :func:`lspe.training.transfer.transfer` for what may differ.
        device: ``auto`` takes a GPU where there is one.
        devices: processes on this machine that share each batch.
        nodes: machines that do.
        threads: of each process; all cores if not given.
        progress: where to show what happens; nowhere if not given.
        tensorboard: write TensorBoard's files too.
        checkpoint_every: seconds between checkpoints; at an interruption and at the end there is always one.

    """
    check_device(device, devices)
    progress = progress if progress is not None and is_first() else Progress()
    threads = threads or default_threads(devices)
    torch.set_num_threads(threads)
    if experiment.fold is not None:
        data = data.fold(experiment.fold)
    data = seen_by_member(experiment, data)
    experiment = fit_to_data(experiment, data)
    _check_processes(data, devices * nodes)
    with hold(folder):
        state = _open_folder(experiment, folder, resume)
        stopped = "" if state is None else _was_stopped(experiment, state, folder)
        if stopped and (folder / "summary.json").is_file():
            return Run.open(folder)

        objective = objective_for(experiment, data)
        module = fresh_module(experiment, data, objective)
        keeper = Bookkeeper(
            folder,
            experiment.task.metric,
            progress,
            threads=threads,
            every=checkpoint_every,
            best_by=experiment.training.best_by,
            tensorboard=tensorboard,
        )
        notes = [] if start is None else _begin_with(start, module.network)
        if state is not None:
            with checkpoint.in_use(folder / LAST):
                module.restore(state)
                keeper.restore(state)
                notes = _differences(state, threads, devices * nodes)
            keeper.stopped = stopped
        then = go_on_with(folder)
        if is_first():
            write_text(folder / CONFIG, f"{REPEATS} this run\n{experiment.to_yaml(folder)}", then=then)
            fragments = "keep" if experiment.table is None else experiment.table.fragments
            write_json(folder / INTERFACE, Interface.of(data, objective, fragments).to_dict(), then=then)
        if not stopped:
            (folder / "summary.json").unlink(missing_ok=True)
            _train(module, keeper, experiment, notes, device=device, devices=devices, nodes=nodes)
        wait_for_all()
        summary = make_summary(Run(folder), module, data, keeper)
        if is_first():
            write_json(folder / "summary.json", summary, then=then)
        return Run(folder)


def _open_folder(experiment: Experiment, folder: Path, resume: bool) -> dict[str, Any] | None:
    """The last checkpoint of a run that goes on; a new run is refused where it would write over another."""
    if not resume:
        if is_first():
            check_free(folder)
        return None
    if not (folder / CONFIG).is_file():
        return None
    _check_same(Run(folder).config, experiment, folder)
    return checkpoint.load(folder / LAST) if (folder / LAST).exists() else None


def _was_stopped(experiment: Experiment, state: dict[str, Any], folder: Path) -> str:
    """Why a run had ended at the state of a checkpoint; '' if it goes on."""
    with checkpoint.in_use(folder / LAST):
        lr = state["optimizer"]["param_groups"][0]["lr"]
        return reason_to_stop(
            experiment.training.protocol,
            epoch=state["epoch"],
            seconds=state["seconds"],
            lr=lr,
            lowest=epoch_of_lowest_loss(state["history"]),
        )


def _check_same(old: Experiment, new: Experiment, folder: Path) -> None:
    """A run goes on as it began; only the limits of the paper's protocol may be moved."""
    before, after = _flat(old.model_dump()), _flat(new.model_dump())
    movable = set()
    if new.training.protocol.kind == "paper":
        movable = {"training.protocol.max_epochs", "training.protocol.max_hours"}
    for place in sorted((before.keys() | after.keys()) - movable):
        if before.get(place) != after.get(place):
            raise RunError(
                f"{folder} was begun with {place} = {before.get(place)}, not {after.get(place)}: "
                "leave the option out to go on, or choose another --out for a new run"
            )


def _flat(values: Any, place: str = "") -> dict[str, Any]:
    if not isinstance(values, dict):
        return {place: values}
    flat: dict[str, Any] = {}
    for name, below in values.items():
        flat |= _flat(below, f"{place}.{name}" if place else name)
    return flat


def _check_processes(data: GraphData, processes: int) -> None:
    """Each process takes its part of every batch, and has to have one."""
    graphs = len(data.split("train"))
    if processes > max(graphs, 1):
        raise TrainingError(
            f"{data.name} has {graphs} training {'graph' if graphs == 1 else 'graphs'}, too few for {processes} "
            "processes that share each batch: leave --devices and --nodes out"
        )


def seen_by_member(experiment: Experiment, data: GraphData) -> GraphData:
    """The data as one network of an ensemble sees them; as they are where it is the only one."""
    members = experiment.training.members or 1
    return data if experiment.member is None else data.member(experiment.member, parts_among(members))


def parts_among(members: int) -> int:
    """Into how many parts that which is not tested is divided: none is so large that little is left to learn from."""
    return max(FEWEST_PARTS, members)


def objective_for(experiment: Experiment, data: GraphData) -> Objective:
    """What is to be learned, as the targets of the training split complete it."""
    y = torch.from_numpy(data.split("train").y.copy())
    return Objective.of(experiment.task, y, standardize=experiment.training.standardize)


def fresh_module(experiment: Experiment, data: GraphData, objective: Objective) -> TrainingModule:
    """The network of an experiment with fresh weights, and what trains it."""
    train, val = data.split("train"), data.split("val")
    for name, part in (("training", train), ("validation", val)):
        if not is_known(part.y).any():
            raise TrainingError(f"{data.name} has no {name} {data.level}s")
    torch.manual_seed(experiment.seed)
    network = build_network(experiment)
    if experiment.training.sync_batch_norm:
        synchronise(network)
    if isinstance(network.descriptors, DescriptorInput):
        network.descriptors.standardize_by(torch.from_numpy(train.column("descriptors").copy()))
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
    *,
    device: str,
    devices: int,
    nodes: int,
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
        run_epochs(module, keeper, protocol.max_epochs - module.epoch, device=device, devices=devices, nodes=nodes)
    except SystemExit:
        if keeper.interrupted is None:
            raise
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise Interrupted(keeper.folder) from None


def run_epochs(
    module: TrainingModule, callback: Callback, epochs: int, *, device: str, devices: int = 1, nodes: int = 1
) -> None:
    """Train for some epochs; ``callback`` counts them (:meth:`TrainingModule.finish_epoch`) and may stop earlier.

    Lightning's trainer has all switched off that costs time or prints: logging, bars and checkpoints are ours.
    """
    from lightning.pytorch import Trainer
    from lightning.pytorch.strategies import DDPStrategy

    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    strategy: Any = "auto"
    if devices * nodes > 1:
        strategy = DDPStrategy(find_unused_parameters=module.leaves_parameters_unused())
    trainer = Trainer(
        accelerator="gpu" if device == "cuda" else device,
        devices=devices,
        num_nodes=nodes,
        strategy=strategy,
        max_epochs=epochs,
        callbacks=[callback],
        limit_val_batches=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*LeafSpec.* is deprecated", FutureWarning)  # Lightning's own use
        trainer.fit(module)


def _differences(state: dict[str, Any], threads: int, devices: int) -> list[str]:
    """What is not as it was when the run began, so that it may not go on to the last digit as it would have."""
    now = {"threads": threads, "processes": devices, "torch": torch.__version__}
    return [
        f"the run was begun with {what} {state[what]} and goes on with {new}: last digits may differ"
        for what, new in now.items()
        if state[what] != new
    ]
