"""``lspe train``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lspe.data.words import Fragments, OnInvalid, SplitKind, TaskKind
from lspe.errors import UserError
from lspe.experiment.protocol import ProtocolKind
from lspe.training.words import Device

if TYPE_CHECKING:
    from lspe.experiment.value import Experiment
    from lspe.training.run import Run

DEFAULT = "nci/gatedgcn-lspe"
DEFAULT_FOR_TABLES = "own/gatedgcn-lspe"
TABLE = "Own data"
MACHINE = "Machine"


def train(
    source: Annotated[
        str | None, typer.Argument(metavar="[PRESET|CONFIG.YAML|RUN]", help="What to train; see lspe presets.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value: model.layers=4.")
    ] = None,
    protocol: Annotated[ProtocolKind | None, typer.Option(metavar="NAME", help="paper or fast.")] = None,
    epochs: Annotated[int | None, typer.Option(metavar="N", min=1, help="At most so many.")] = None,
    seed: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Of weights and order; repeat for several.")
    ] = None,
    fold: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Only this one (0, 1, …); otherwise all.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Run folder; otherwise one below runs/.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    init_from: Annotated[Path | None, typer.Option(metavar="RUN", help="Start from another run's weights.")] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard's files too.")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="CSV, TSV or Parquet with SMILES.", rich_help_panel=TABLE)
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="What to learn; repeat for several.", rich_help_panel=TABLE),
    ] = None,
    smiles_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Where the SMILES are.", rich_help_panel=TABLE)
    ] = None,
    task: Annotated[
        TaskKind | None,
        typer.Option(metavar="KIND", help="regression, binary or multiclass.", rich_help_panel=TABLE),
    ] = None,
    weight_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="How much a row counts.", rich_help_panel=TABLE)
    ] = None,
    split: Annotated[
        SplitKind | None, typer.Option(metavar="KIND", help="random, scaffold or column.", rich_help_panel=TABLE)
    ] = None,
    split_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Which says train, val or test.", rich_help_panel=TABLE)
    ] = None,
    folds: Annotated[
        int | None, typer.Option(metavar="N", min=3, help="Cross-validate.", rich_help_panel=TABLE)
    ] = None,
    fragments: Annotated[
        Fragments,
        typer.Option(
            metavar="DO", help="Salts: keep (as usual), largest or error.", show_default=False, rich_help_panel=TABLE
        ),
    ] = "keep",
    on_invalid: Annotated[
        OnInvalid,
        typer.Option(
            metavar="DO", help="Bad rows: error (as usual), skip or nan.", show_default=False, rich_help_panel=TABLE
        ),
    ] = "error",
    device: Annotated[
        Device, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.", rich_help_panel=MACHINE)
    ] = "auto",
    devices: Annotated[
        int, typer.Option(metavar="N", min=1, help="Processes that share each batch.", rich_help_panel=MACHINE)
    ] = 1,
    nodes: Annotated[int, typer.Option(metavar="N", min=1, help="Machines that do.", rich_help_panel=MACHINE)] = 1,
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of each process; otherwise all.", rich_help_panel=MACHINE)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes that read molecules.", rich_help_panel=MACHINE)
    ] = None,
    root: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where data sets are.", rich_help_panel=MACHINE)
    ] = None,
) -> None:
    """Train a network; without an argument, the default on molecules of RDKit.

    Examples: lspe train zinc/gatedgcn-lspe --protocol fast
              lspe train --data solubility.csv --target logS --out runs/logS
              lspe train runs/logS --resume
    """
    from lspe.config import validate
    from lspe.experiment.data import load_data
    from lspe.experiment.overriding import override, with_epochs, with_protocol, with_table
    from lspe.experiment.reading import read_experiment
    from lspe.experiment.table_source import TableSource
    from lspe.experiment.value import Experiment

    if source is None:
        experiment = read_experiment(DEFAULT if data is None else DEFAULT_FOR_TABLES)
    else:
        experiment = read_experiment(source)
    if data is not None:
        chosen = split or ("column" if split_column else "random")
        table = TableSource(
            path=str(data.absolute()),
            smiles=smiles_column,
            targets=tuple(target) if target else None,
            task=task,
            weight=weight_column,
            split=chosen,
            split_column=split_column,
            folds=folds,
            fragments=fragments,
            on_invalid=on_invalid,
        )
        experiment = with_table(experiment, table)
    elif target or smiles_column or task or weight_column or split or split_column or folds:
        raise UserError("--target, --smiles-column, --task, --weight-column, --split and --folds need --data TABLE")
    if protocol is not None:
        experiment = with_protocol(experiment, protocol)
    if epochs is not None:
        experiment = with_epochs(experiment, epochs)
    if seed:
        seeds = {"seed": seed[0], "seeds": tuple(seed) if len(seed) > 1 else ()}
        experiment = validate(Experiment, {**experiment.model_dump(), **seeds}, "--seed")
    if fold is not None:
        experiment = experiment.model_copy(update={"fold": fold})
    experiment = override(experiment, settings or [])
    folder = out or _default_folder(experiment, source)
    _check_machine_and_folder(device, devices, folder, resume)
    graphs = load_data(experiment, root, processes=workers)
    _run(
        experiment,
        graphs,
        folder,
        resume=resume,
        start=init_from,
        device=device,
        devices=devices,
        nodes=nodes,
        threads=threads,
        tensorboard=tensorboard,
    )


def _check_machine_and_folder(device: str, devices: int, folder: Path, resume: bool) -> None:
    """Say what cannot be before the data are read, which may take long."""
    from lspe.devices import check_device
    from lspe.training.distributed import is_first
    from lspe.training.run import check_free

    check_device(device, devices)
    if is_first() and not resume:
        check_free(folder)


def _run(experiment: "Experiment", data: Any, folder: Path, *, start: Path | None, **options: Any) -> None:
    from lspe.plots.scores import training_curves
    from lspe.plots.style import save
    from lspe.training import Interrupted, Run, open_runs
    from lspe.training import train as train_all
    from lspe.training.distributed import is_first
    from lspe.training.progress import Progress, progress_for_stdout

    progress = progress_for_stdout() if is_first() else Progress()
    network = None if start is None else Run.open(start).network()
    try:
        run = train_all(experiment, data, folder, start=network, progress=progress, **options)
    except Interrupted as interruption:
        typer.echo(str(interruption), err=True)
        raise typer.Exit(130) from None
    if is_first():
        save(training_curves(open_runs(run.path)), run.path / "curves", "png")
        _report_rows(data, folder)
        _show(run)
        if experiment.table is not None:
            _show_what_next(run, data)


def _default_folder(experiment: "Experiment", source: str | None) -> Path:
    """Where a run goes if nobody says: a run folder goes on in itself, others below runs/ by name and seed."""
    if source is not None and os.path.isdir(source):
        return Path(source)
    name = experiment.name if experiment.table is None else Path(experiment.table.path).name.split(".")[0]
    seeds = experiment.seeds or (experiment.seed,)
    return Path("runs") / f"{name.replace('/', '-')}-seed{'-'.join(map(str, seeds))}"


def _report_rows(data: Any, folder: Path) -> None:
    report = getattr(data, "report", None)
    if report is None:
        return
    typer.echo(report.summary())
    if report.findings:
        report.write_csv(folder / "rows.csv")
        typer.echo(f"every row left out, changed or noted: {folder / 'rows.csv'}")


def _show(run: "Run") -> None:
    from rich.table import Table

    from lspe.cli.console import console
    from lspe.training.summary import score_rows

    summary = run.summary
    table = Table(box=None)
    rows = score_rows(summary)
    for number, header in enumerate(rows[0]):
        table.add_column(header, justify="right" if number else "left")
    for row in rows[1:]:
        table.add_row(*row)
    out = console()
    out.print(table)
    out.print(f"run folder: {run.path}", highlight=False)


def _show_what_next(run: "Run", data: Any) -> None:
    """Write and draw the predictions for the test molecules, and say how to predict others."""
    import shlex

    from lspe.plots.predictions import picture_of
    from lspe.plots.style import save
    from lspe.predict.splits import predict_split, together
    from lspe.training import open_runs

    tests = []
    for one in open_runs(run.path):
        tests.append(predict_split(one, data))
        tests[-1].write(one.path / "predictions.csv")
    name, figure = picture_of(together(tests))
    [picture] = save(figure, run.path / name, "png")
    tables = run.path / ("predictions.csv" if len(tests) == 1 else "*/predictions.csv")
    typer.echo(f"true and predicted values of the test molecules: {picture}, {tables}")
    typer.echo(f"predict others with:\n  lspe predict {shlex.quote(str(run.path))} molecules.csv -o predicted.csv")
