"""``lspe train``."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lspe.data.words import Duplicates, Fragments, Level, OnInvalid, OptionalDescriptorKind, SplitKind, TaskKind
from lspe.errors import UserError
from lspe.experiment.protocol import ProtocolKind
from lspe.training.words import Device

if TYPE_CHECKING:
    from lspe.training.run import Run
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
        str | None,
        typer.Option(
            metavar="FILE",
            help="Table with SMILES (- is stdin), SDF; or graphs: file, folder, pyg:NAME, ogb:NAME.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    level: Annotated[
        Level | None,
        typer.Option(metavar="NAME", help="Targets belong to: graph, node, edge or link.", rich_help_panel=TABLE),
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
    extra_column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Numbers known of each molecule; repeat.", rich_help_panel=TABLE),
    ] = None,
    split: Annotated[
        SplitKind | None, typer.Option(metavar="KIND", help="random, scaffold, time or column.", rich_help_panel=TABLE)
    ] = None,
    split_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Which says train, val or test; or when.", rich_help_panel=TABLE),
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
    duplicates: Annotated[
        Duplicates,
        typer.Option(
            metavar="DO",
            help="Rows of one molecule: keep in one part (as usual), first or mean.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = "keep",
    members: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Networks that predict as one; otherwise by size.", rich_help_panel=TABLE
        ),
    ] = None,
    descriptors: Annotated[
        OptionalDescriptorKind | None,
        typer.Option(metavar="KIND", help="Beside the networks' readout: rdkit, morgan, none.", rich_help_panel=TABLE),
    ] = None,
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
              lspe train --data graphs.npz --out runs/mine
              lspe train runs/logS --resume
    """
    from lspe.experiment import CONFIG, read_experiment
    from lspe.sources import DEFAULT
    from lspe.training import Interrupted
    from lspe.training.distributed import is_first
    from lspe.workflow import train as train_on

    of_own_data = (target, smiles_column, level, task, weight_column, split, split_column, folds)
    if data is None and any(of_own_data):
        raise UserError(
            "--target, --smiles-column, --level, --task, --weight-column, --split and --folds need --data FILE"
        )
    if out is None and source is not None and data is None and os.path.isfile(os.path.join(source, CONFIG)):
        out = Path(source)
    try:
        run = train_on(
            read_experiment(DEFAULT if source is None else source) if data is None else data,
            preset=None if data is None else source,
            out=out,
            targets=target or None,
            smiles=smiles_column,
            level=level,
            task=task,
            weight=weight_column,
            extra=extra_column or (),
            split=split,
            split_column=split_column,
            folds=folds,
            fragments=fragments,
            duplicates=duplicates,
            members=members,
            descriptors=descriptors,
            on_invalid=on_invalid,
            protocol=protocol,
            epochs=epochs,
            seeds=seed or None,
            fold=fold,
            settings=settings or [],
            resume=resume,
            start=init_from,
            device=device,
            devices=devices,
            nodes=nodes,
            threads=threads,
            workers=workers,
            root=root,
            tensorboard=tensorboard,
            progress=True,
        )
    except Interrupted as interruption:
        typer.echo(str(interruption), err=True)
        raise typer.Exit(130) from None
    if is_first():
        _show(run)


def _show(run: "Run") -> None:
    from rich.table import Table

    from lspe.cli.console import console
    from lspe.training.summary import calibration_in_words, intervals_in_words, score_rows, weights_in_words

    summary = run.summary
    table = Table(box=None)
    rows = score_rows(summary)
    for number, header in enumerate(rows[0]):
        table.add_column(header, justify="right" if number else "left")
    for row in rows[1:]:
        table.add_row(*row)
    out = console()
    out.print(table)
    for words in (weights_in_words(summary), intervals_in_words(summary), calibration_in_words(summary)):
        if words:
            out.print(words, highlight=False)
    out.print(f"run folder: {run.path}", highlight=False)
    if run.config.table is not None or run.config.graphs is not None:
        others = "graphs.npz" if run.config.table is None else "molecules.csv"
        folder = shlex.quote(str(run.path))
        typer.echo(f"predict others with:\n  lspe predict {folder} {others} -o predicted.csv")
