"""``lspe sweep``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lspe.data.words import Level, TaskKind
from lspe.errors import UserError
from lspe.experiment.protocol import ProtocolKind
from lspe.training.words import Device

if TYPE_CHECKING:
    from lspe.sweeping import Sweep


def sweep(
    source: Annotated[
        str | None, typer.Argument(metavar="[PRESET|CONFIG.YAML|RUN]", help="What to train; see lspe presets.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=A,B", help="Values to try; one: the same for all.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="N,N", help="Of weights and order, for each setting.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the sweep.")] = Path("runs/sweep"),
    data: Annotated[
        str | None, typer.Option(metavar="FILE", help="Table with SMILES, SDF; or graphs: file, folder, pyg:NAME.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="What to learn; repeat.")] = None,
    smiles_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="Where the SMILES are.")] = None,
    level: Annotated[Level | None, typer.Option(metavar="NAME", help="Targets belong to: graph, node or edge.")] = None,
    task: Annotated[TaskKind | None, typer.Option(metavar="KIND", help="regression, binary or multiclass.")] = None,
    protocol: Annotated[ProtocolKind | None, typer.Option(metavar="NAME", help="paper or fast.")] = None,
    epochs: Annotated[int | None, typer.Option(metavar="N", min=1, help="At most so many.")] = None,
    test: Annotated[bool, typer.Option("--test", help="Show test scores too; the validation chooses.")] = False,
    device: Annotated[Device, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="Otherwise all cores.")] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes that read molecules.")] = None,
    root: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data sets are.")] = None,
) -> None:
    """Train every combination of values with every seed and compare them; goes on where it stopped.

    Each has a run folder of its own, and sweep.csv has one row per setting, the best on the validation part first.

    Example: lspe sweep --data solubility.csv --set model.dropout=0,0.1 --seeds 41,42
             lspe sweep runs/logS --set model.k=8,16,24 -o runs/k
    """
    from lspe.sources import DEFAULT
    from lspe.sweeping import read_values
    from lspe.sweeping import sweep as sweep_over
    from lspe.training import Interrupted

    values, same_for_all = read_values(settings or [])
    try:
        result = sweep_over(
            (source or DEFAULT) if data is None else data,
            values,
            out=out,
            seeds=_numbers(seeds),
            preset=None if data is None else source,
            targets=target or None,
            smiles=smiles_column,
            level=level,
            task=task,
            protocol=protocol,
            epochs=epochs,
            settings=same_for_all,
            test=test,
            root=root,
            workers=workers,
            progress=True,
            device=device,
            threads=threads,
        )
    except Interrupted:
        typer.echo("interrupted; what is finished is kept. The same command goes on.", err=True)
        raise typer.Exit(130) from None
    _show(result, list(values))
    if any(row["problem"] for row in result.rows):
        raise typer.Exit(1)


def _numbers(text: str | None) -> list[int]:
    try:
        return [int(one) for one in text.split(",")] if text else []
    except ValueError:
        raise UserError(f"--seeds {text}: write whole numbers with commas between them: 41,42") from None


def _show(result: "Sweep", places: list[str]) -> None:
    from rich.table import Table

    from lspe.cli.console import console
    from lspe.experiment.task import format_score

    table = Table(box=None)
    splits = [split for split in ("val", "test") if f"{split}_{result.metric}" in result.rows[0]]
    for column in (*places, *(f"{split} {result.metric}" for split in splits), "runs", "epochs", "parameters"):
        table.add_column(column, justify="left" if column in places else "right")
    for row in result.rows:
        scores = []
        for split in splits:
            mean, sd = row[f"{split}_{result.metric}"], row[f"{split}_sd"]
            several = {"mean": mean, "sd": sd} if mean is not None and row["runs"] > 1 else mean
            scores.append(format_score(result.metric, several))
        epochs = "–" if row["epochs"] is None else f"{row['epochs']:.0f}"
        parameters = "–" if row["parameters"] is None else f"{row['parameters']:,}"
        table.add_row(*(row[place] for place in places), *scores, str(row["runs"]), epochs, parameters)
    out = console()
    out.print(table)
    for row in result.rows:
        if row["problem"]:
            out.print(f"{row['folder']}: {row['problem']}", highlight=False)
    if result.rows[0]["runs"]:
        out.print(f"best on the validation part: {result.best['folder']}", highlight=False)
    out.print(f"table: {result.path / 'sweep.csv'}", highlight=False)
