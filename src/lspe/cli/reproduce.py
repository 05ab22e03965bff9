"""``lspe reproduce``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lspe.experiment.protocol import ProtocolKind

if TYPE_CHECKING:
    from lspe.reproduce import Result


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE|PRESET...", help="table1, table2, ablation, nonmolecular, k-study, csl, nci, or presets."
        ),
    ],
    seeds: Annotated[int | None, typer.Option(min=1, max=4, help="Of the paper's four; csl and nci take one.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many, to see something sooner.")] = None,
    protocol: Annotated[ProtocolKind | None, typer.Option(help="Instead of the preset's own.")] = None,
    out: Annotated[Path, typer.Option(help="Where runs and tables go.")] = Path("runs/reproduce"),
    devices: Annotated[int, typer.Option(min=1, help="Processes that share each batch.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Of each process; otherwise all cores.")] = None,
    root: Annotated[Path | None, typer.Option(help="Where data sets are.")] = None,
) -> None:
    """Train the rows of the paper's tables and print ours beside the paper's; goes on where it stopped.

    Example: lspe reproduce csl
    """
    import lspe.reproduce
    from lspe.training import Interrupted
    from lspe.training.distributed import is_first
    from lspe.training.progress import Progress, progress_for_stdout

    problems = False
    for name in names:
        lspe.reproduce.rows_of_table(name)
    for name in names:
        try:
            results = lspe.reproduce.reproduce(
                name,
                out,
                seeds=seeds,
                epochs=epochs,
                protocol=protocol,
                root=root,
                devices=devices,
                threads=threads,
                progress=progress_for_stdout() if is_first() else Progress(),
            )
        except Interrupted:
            typer.echo("interrupted; what is finished is kept. The same command goes on.", err=True)
            raise typer.Exit(130) from None
        if is_first():
            _show(name, results, out)
        problems |= any(result.problem for result in results)
    if problems:
        raise typer.Exit(1)


def _show(name: str, results: "Sequence[Result]", out: Path) -> None:
    from rich.table import Table

    from lspe.cli.console import console
    from lspe.reproduce.results import as_text, baselines_as_text, constants_as_text

    header, *rows = baselines_as_text(results) if name == "table2" else as_text(results)
    table = Table(box=None, title=name)
    for column in header:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    screen = console()
    screen.print(table)
    for line in constants_as_text(results):
        screen.print(line, highlight=False)
    for result in results:
        if result.problem:
            screen.print(f"{result.name}: {result.problem}", highlight=False)
    stem = out / name.replace("/", "-")
    screen.print(f"written: {stem}.csv, .md, .png", highlight=False)
