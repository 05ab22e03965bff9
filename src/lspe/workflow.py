"""From data to a run folder with everything in it: what ``lspe train`` does, for Python.

>>> run = lspe.train("solubility.csv", targets=["logS"], out="runs/logS")
>>> run.summary["reported"]["test"]["mae"]
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lspe.announcement import announce, members_for, threads_for
from lspe.data import GraphData
from lspe.data.statistics import in_a_sentence
from lspe.data.words import Duplicates, Fragments, Level, OnInvalid, OptionalDescriptorKind, SplitKind, TaskKind
from lspe.devices import check_device, choose_device
from lspe.errors import UserError
from lspe.experiment import (
    OWN,
    Experiment,
    GraphSource,
    load_data,
)
from lspe.experiment.given import with_network
from lspe.experiment.overriding import override, with_own_data
from lspe.experiment.protocol import ProtocolKind
from lspe.files import complete_or_nothing, make_folder
from lspe.for_people import write_for_people
from lspe.locations import Root
from lspe.nn import Network
from lspe.sources import DEFAULT, Source, adjusted, default_folder, experiment_for
from lspe.training import checkpoint
from lspe.training.callbacks import LAST
from lspe.training.distributed import is_first, wait_for_all
from lspe.training.environment import default_threads
from lspe.training.progress import Progress, progress_for_stdout
from lspe.training.run import Run, check_free, open_runs
from lspe.training.seeds_and_folds import train as train_all
from lspe.training.words import Device

if TYPE_CHECKING:
    from lightning.pytorch import Callback
    from lightning.pytorch.loggers import Logger

GRAPHS = "graphs.lspe"
STANDARD_INPUT = "-"


def train(
    data: Source = DEFAULT,
    *,
    preset: str | None = None,
    network: Network | None = None,
    out: str | os.PathLike[str] | None = None,
    targets: Sequence[str] | None = None,
    smiles: str | None = None,
    level: Level | None = None,
    task: TaskKind | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
    split: SplitKind | None = None,
    split_column: str | None = None,
    folds: int | None = None,
    fragments: Fragments = "keep",
    duplicates: Duplicates = "keep",
    on_invalid: OnInvalid = "error",
    members: int | None = None,
    descriptors: OptionalDescriptorKind | None = None,
    protocol: ProtocolKind | None = None,
    epochs: int | None = None,
    seeds: int | Sequence[int] | None = None,
    fold: int | None = None,
    settings: Mapping[str, Any] | Iterable[str] = (),
    resume: bool = False,
    start: str | os.PathLike[str] | None = None,
    device: Device = "auto",
    devices: int = 1,
    nodes: int = 1,
    threads: int | None = None,
    workers: int | None = None,
    root: Root = None,
    tensorboard: bool = False,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
    progress: bool = False,
) -> Run:
    """Train a network, and leave in a folder what is needed to predict with it, to go on and to look at it.

    Args:
        data: what to learn from: a table of molecules (its path, ``-`` for the standard input), PyG graphs with targets
            of graphs, nodes or edges (see :func:`lspe.from_pyg`), files of graphs (:func:`lspe.data.save_graphs`), a
            folder of them, an archive of OGB, a data set by name (``pyg:TUDataset/MUTAG``, ``ogb:ogbn-arxiv``), the
            name of a preset (with its own data), a YAML file, an :class:`~lspe.experiment.Experiment`, or a run folder,
            which is trained again or goes on.
        preset: network and protocol for one's own data; the default for these if not given.
        network: a network of one's own in the place of the preset's; a copy of it is trained, from the weights it has.
            The run folder cannot make it again: give it again to ``lspe.load`` and to go on.
        out: the run folder; otherwise one below runs/.
        targets: columns of the table to learn.
        smiles: its column of SMILES.
        level: what the ``y`` of graphs belongs to, ``graph``, ``node`` or ``edge``; told by its shape if not given.
            ``link``: there is no ``y``, which nodes are joined is to be learned.
        task: ``regression``, ``binary`` or ``multiclass``.
        weight: column that says how much a row counts.
        extra: columns of further numbers that are known of each molecule, also when predicting.
        split: ``random``, ``scaffold``, ``time`` (the latest are tested) or ``column``; if not given, as a column that
            is called split says, else random.
        split_column: column that says train, val or test; for ``time``, when each row is from.
        folds: cross-validate.
        fragments: what is done with salts: ``keep``, ``largest`` or ``error``.
        duplicates: what is done with rows of the same molecule: ``keep`` them in one part, ``first`` or ``mean``.
        on_invalid: what is done with bad rows: ``error``, ``skip`` or ``nan``.
        members: so many networks predict as one; by the size of the table if not given.
        descriptors: what stands beside the networks' readout: ``rdkit``, ``morgan`` or ``none``; if not given, as
            in the preset.
        protocol: ``paper`` or ``fast``.
        epochs: at most so many.
        seeds: of weights and order; several are several trainings.
        fold: only this one; otherwise all.
        settings: single values by their place, ``{"model.layers": 4}`` or ``["model.layers=4"]``; classes of one's own
            as they are, ``{"model.name": "own", "model.layer": MyLayer}``.
        resume: go on with the run in the folder.
        start: another run, whose weights to begin with.
        device: ``auto`` takes a GPU where there is one.
        devices: processes on this machine that share each batch.
        nodes: machines that do.
        threads: of each process; if not given, all cores, or one for own data where more are hardly faster.
        workers: processes that read molecules.
        root: where benchmarks are.
        tensorboard: write TensorBoard's files too.
        callbacks: of Lightning; see :func:`lspe.training.fit`.
        loggers: of Lightning, such as ``WandbLogger``.
        progress: show on the standard output what happens.

    Returns:
        The run. Beside what :class:`~lspe.training.Run` reads, its folder has curves.png and, of one's own data,
        predictions.csv and a picture of the test graphs; of a table report.html, and rows.csv where rows were noted.

    """
    table = {
        "targets": None if targets is None else tuple(targets),
        "smiles": smiles,
        "task": task,
        "weight": weight,
        "extra": tuple(extra),
        "split": split or ("column" if split_column else None),
        "split_column": split_column,
        "folds": folds,
        "fragments": fragments,
        "duplicates": duplicates,
        "on_invalid": on_invalid,
    }
    if data == STANDARD_INPUT:
        data = keep_standard_input(out)
    experiment, graphs = experiment_for(data, preset, table, level)
    if members is not None:
        experiment = override(experiment, [f"training.members={members}"])
    if descriptors is not None:
        experiment = override(experiment, [f"model.descriptors={descriptors}"])
    experiment = adjusted(experiment, protocol=protocol, epochs=epochs, seeds=seeds, fold=fold, settings=settings)
    if network is not None:
        experiment = with_network(experiment, network)
    folder = Path(out) if out is not None else default_folder(experiment, data)
    return carry_out(
        experiment,
        folder,
        graphs,
        network=network,
        start=start,
        resume=resume,
        workers=workers,
        root=root,
        progress=progress_for_stdout() if progress and is_first() else Progress(),
        device=device,
        devices=devices,
        nodes=nodes,
        threads=threads,
        tensorboard=tensorboard,
        callbacks=callbacks,
        loggers=loggers,
    )


def carry_out(
    experiment: Experiment,
    folder: Path,
    graphs: GraphData | None,
    *,
    start: str | os.PathLike[str] | None,
    resume: bool,
    device: Device,
    devices: int,
    workers: int | None,
    root: Root,
    progress: Progress,
    **options: Any,
) -> Run:
    """Train an experiment on its data, or on graphs in memory, and write the files for people."""
    check_device(device, devices)
    if is_first() and not resume:
        check_free(folder)
    if graphs is not None:
        experiment = keep_graphs(experiment, graphs, folder)
    data = load_data(experiment, root, processes=workers)
    experiment = members_for(experiment, data, processes=devices * options["nodes"])
    options["threads"] = options["threads"] or (_threads_before(folder) if resume else None)
    if options["threads"] is None:
        most = default_threads(devices)
        measured = experiment.dataset == OWN and choose_device(device) == "cpu" and devices * options["nodes"] == 1
        options["threads"] = threads_for(experiment, data, most) if measured else most
    torch.set_num_threads(options["threads"])
    if experiment.graphs is not None:
        progress.note(in_a_sentence(data))
    elif experiment.dataset == OWN and is_first():
        progress.say(announce(experiment, data, options["network"]))
    beginning = None if start is None else open_runs(Path(start))[0].network()
    options |= {"device": device, "devices": devices, "progress": progress}
    run = train_all(experiment, data, folder, start=beginning, resume=resume, **options)
    if is_first():
        write_for_people(run, data, progress, torch.get_num_threads())
    return run


def _threads_before(folder: Path) -> int | None:
    """Of the run that goes on, so that it does so to the last digit; ``None`` where nothing was trained yet."""
    for path in (folder / LAST, *sorted(folder.glob(f"*/{LAST}"))):
        if path.is_file():
            threads = checkpoint.load(path).get("threads")
            return threads if isinstance(threads, int) and threads > 0 else None
    return None


def keep_standard_input(out: str | os.PathLike[str] | None) -> Path:
    """A table from the standard input becomes a file of the run folder, so that the run can go on from it."""
    if out is None:
        raise UserError("a table from the standard input needs a run folder to be kept in: give --out DIR")
    check_free(Path(out))
    make_folder(Path(out))
    path = Path(out) / "table.csv"
    with complete_or_nothing(path) as temporary, temporary.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def keep_graphs(experiment: Experiment, graphs: GraphData, folder: Path) -> Experiment:
    """Graphs in memory become a file of the run folder, so that the run can go on and be evaluated from it."""
    path = folder / GRAPHS
    if is_first():
        folder.mkdir(parents=True, exist_ok=True)
        graphs.save(path)
    wait_for_all()
    return with_own_data(experiment, GraphSource(path=str(path.absolute())))
