"""From data to a run folder with everything in it: what ``lspe train`` does, for Python.

>>> run = lspe.train("solubility.csv", targets=["logS"], out="runs/logS")
>>> run.summary["reported"]["test"]["mae"]
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch_geometric.data import Data

from lspe.announcement import announce, members_for, threads_for
from lspe.blending import blend, is_blended
from lspe.config import validate
from lspe.data import GraphData, from_pyg
from lspe.data.graphs.named import is_named
from lspe.data.graphs.storage import is_stored_graphs
from lspe.data.statistics import in_a_sentence
from lspe.data.words import Duplicates, Fragments, Level, OnInvalid, OptionalDescriptorKind, SplitKind, TaskKind
from lspe.devices import check_device, choose_device
from lspe.errors import UserError
from lspe.experiment import (
    CONFIG,
    OWN,
    Experiment,
    GraphSource,
    TableSource,
    list_presets,
    load_data,
    read_experiment,
)
from lspe.experiment.given import with_network
from lspe.experiment.graph_source import PACKED
from lspe.experiment.overriding import override, with_epochs, with_own_data, with_protocol
from lspe.experiment.protocol import ProtocolKind
from lspe.files import complete_or_nothing, make_folder
from lspe.html_report import write_report
from lspe.locations import Root
from lspe.nn import Network
from lspe.own_parts import path_of
from lspe.plots.predictions import picture_of
from lspe.plots.scores import training_curves
from lspe.plots.style import save
from lspe.plots.trust import picture_of_trust
from lspe.predict.blend import Blend
from lspe.predict.known import KNOWN, KnownMolecules
from lspe.predict.member import Member
from lspe.predict.splits import SplitPredictions, predict_split, together
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

DEFAULT = "nci/gatedgcn-lspe"
DEFAULT_FOR_TABLES = "own/molecules"
DEFAULT_FOR_GRAPHS = "own/gatedgcn-lspe"
DEFAULT_FOR_NODES = "own/nodes-gatedgcn-lspe"
DEFAULT_FOR_NODES_OF_ONE_GRAPH = "own/one-graph-gatedgcn-lspe"
DEFAULT_FOR_LINKS = "own/links-gatedgcn-lspe"
GRAPHS = "graphs.lspe"
STANDARD_INPUT = "-"
CURVES = "curves.png"

Source: TypeAlias = str | os.PathLike[str] | Experiment | GraphData | Data | Sequence[Data]


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
        split: ``random``, ``scaffold`` or ``column``; if not given, as a column called split says, else random.
        split_column: column that says train, val or test.
        folds: cross-validate.
        fragments: what is done with salts: ``keep``, ``largest`` or ``error``.
        duplicates: what is done with rows of the same molecule: ``keep`` them in one part, ``first`` or ``mean``.
        on_invalid: what is done with bad rows: ``error``, ``skip`` or ``nan``.
        members: so many networks predict as one; by the size of the table if not given.
        descriptors: what stands beside the networks' readout: ``rdkit``, ``morgan`` or ``none``; as in the preset
            if not given.
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


def experiment_for(
    data: Source, preset: str | None, table: Mapping[str, Any], level: Level | None = None
) -> tuple[Experiment, GraphData | None]:
    """What is to be trained, and the graphs where they are in memory; ``table`` says how one's own is read."""
    if isinstance(data, Experiment):
        return data, None
    if not isinstance(data, str | os.PathLike):
        graphs = data if isinstance(data, GraphData) else from_pyg(data, level=level, task=table["task"])
        return with_own_data(read_experiment(preset or default_for(graphs)), None), graphs
    name = os.fspath(data)
    if is_experiment(name):
        if preset is not None:
            raise UserError(f"{name} says itself what to train: leave the preset {preset!r} out")
        return read_experiment(name), None
    if is_named(name) or name.endswith(PACKED) or is_stored_graphs(name):
        graph_source = _graph_source(name, level, table)
        chosen = preset or default_for(graph_source.load())
        return with_own_data(read_experiment(chosen), graph_source), None
    source = validate(TableSource, {"path": str(Path(name).absolute()), **table}, name)
    return with_own_data(read_experiment(preset or DEFAULT_FOR_TABLES), source), None


def _graph_source(name: str, level: Level | None, table: Mapping[str, Any]) -> GraphSource:
    """Where graphs are; what can only be said of a table is refused."""
    of_tables = {"targets": "--target", "smiles": "--smiles-column", "weight": "--weight-column"}
    for option, shown in {**of_tables, "split_column": "--split-column"}.items():
        if table[option] is not None:
            raise UserError(f"{name} holds graphs, and {shown} is for a table of molecules: leave it out")
    if table["split"] == "scaffold":
        raise UserError(f"{name} holds graphs, which have no scaffolds: leave --split out")
    path = name if is_named(name) else str(Path(name).absolute())
    values = {"path": path, "level": level, "task": table["task"], "folds": table["folds"]}
    return validate(GraphSource, values, name)


def default_for(data: GraphData) -> str:
    """The preset for one's own graphs if nobody names one."""
    if data.level == "graph":
        return DEFAULT_FOR_GRAPHS
    if data.level == "link":
        return DEFAULT_FOR_LINKS
    return DEFAULT_FOR_NODES if data.divided == "graphs" else DEFAULT_FOR_NODES_OF_ONE_GRAPH


def is_experiment(name: str) -> bool:
    """Whether a text names a preset, a YAML file or a run folder, and not own data; a misspelt preset, too."""
    may_be_preset = name in list_presets() or not (os.path.exists(name) or Path(name).suffix or is_named(name))
    return may_be_preset or name.endswith((".yaml", ".yml")) or os.path.isfile(os.path.join(name, CONFIG))


def adjusted(
    experiment: Experiment,
    *,
    protocol: ProtocolKind | None = None,
    epochs: int | None = None,
    seeds: int | Sequence[int] | None = None,
    fold: int | None = None,
    settings: Mapping[str, Any] | Iterable[str] = (),
) -> Experiment:
    """The experiment with some of its values changed."""
    if protocol is not None:
        experiment = with_protocol(experiment, protocol)
    if epochs is not None:
        experiment = with_epochs(experiment, epochs)
    if seeds is not None:
        several = (seeds,) if isinstance(seeds, int) else tuple(seeds)
        values = {"seed": several[0], "seeds": several if len(several) > 1 else ()}
        experiment = validate(Experiment, {**experiment.model_dump(), **values}, "--seed")
    if fold is not None:
        experiment = validate(Experiment, {**experiment.model_dump(), "fold": fold}, "--fold")
    if isinstance(settings, Mapping):
        settings = [f"{place}={json.dumps(value, default=path_of)}" for place, value in settings.items()]
    return override(experiment, settings)


def default_folder(experiment: Experiment, data: Source) -> Path:
    """Where a run goes if nobody says: a run folder goes on in itself, others below runs/ by name and seed."""
    if isinstance(data, str | os.PathLike) and os.path.isfile(os.path.join(data, CONFIG)):
        return Path(data)
    name = experiment.name
    if experiment.table is not None:
        name = Path(experiment.table.path).name.split(".")[0]
    elif experiment.graphs is not None:
        name = experiment.graphs.name
    seeds = experiment.seeds or (experiment.seed,)
    return Path("runs") / f"{name.replace('/', '-')}-seed{'-'.join(map(str, seeds))}"


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


def write_for_people(run: Run, data: GraphData, progress: Progress, threads: int) -> None:
    """Curves; of one's own data the rows that were noted, and the test graphs' predictions as tables and a picture.

    The molecules of a table that were learned from are kept, to compare others with them. What predicts as one is put
    together first; the curves come last, but for the report of a table, and tell that all the others are there.
    """
    runs = open_runs(run.path, run.given)
    if data.report is not None:
        progress.note(data.report.summary())
        if data.report.findings:
            data.report.write_csv(run.path / "rows.csv")
            progress.note(f"every row left out, changed or noted: {run.path / 'rows.csv'}")
    if data.smiles is not None:
        KnownMolecules.of(Member.of_run(runs[0]), data).save(run.path / KNOWN)
    tests: list[SplitPredictions] = []
    if run.config.dataset == OWN:
        for one in [run] if (run.config.training.members or 1) > 1 else runs:
            tests.append(blend(one, data, threads=threads).both if is_blended(one) else predict_split(one, data))
            tests[-1].write(one.path / "predictions.csv")
        name, figure = picture_of(together(tests))
        [picture] = save(figure, run.path / name, "png")
        blended = Blend.read(run.path)
        if blended is not None and (trust := picture_of_trust(together(tests), blended.half_widths)) is not None:
            save(trust[1], run.path / trust[0], "png")
        tables = run.path / ("predictions.csv" if len(tests) == 1 else "*/predictions.csv")
        progress.note(f"true and predicted values of the test {tests[0].level}s: {picture}, {tables}")
    save(training_curves(runs), (run.path / CURVES).with_suffix(""), "png")
    if run.config.table is not None:
        report = write_report(run, together(tests), fragments=run.config.table.fragments)
        progress.note(f"everything at a glance, for a web browser: {report}")
