"""``lspe reproduce``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lspe.errors import UserError
from lspe.experiment.protocol import ProtocolKind

if TYPE_CHECKING:
    from lspe.reproduce import Result

WIDE_ENOUGH = 240
"""For a table of results that goes into a file or a pipe."""


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE|PRESET...",
            help="All of a data set: zinc, moltox21, molpcba, imdb-binary, imdb-multi, cifar10, csl, nci; "
            "table1, table2, ablation, nonmolecular, k-study, zinc-k; or presets.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="ROW", help="Only such rows: zinc/pna, 'zinc/san*'; repeat for several.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, max=4, help="Of the paper's four; csl and nci take one.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many, to see something sooner.")] = None,
    protocol: Annotated[ProtocolKind | None, typer.Option(help="Instead of the preset's own.")] = None,
    hours: Annotated[
        float | None, typer.Option(min=0, metavar="H", help="Stop after the epoch in which they have passed.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Train nothing; print the tables of what there is.")] = False,
    out: Annotated[Path, typer.Option(help="Where runs and tables go.")] = Path("runs/reproduce"),
    results: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where tables and the small files of runs go as well.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Processes that share each batch.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Of each process; otherwise all cores.")] = None,
    root: Annotated[Path | None, typer.Option(help="Where data sets are.")] = None,
) -> None:
    """Train the rows of the paper's tables and print ours beside the paper's; goes on where it stopped.

    The same command in several terminals shares the work; any of them can be killed and started again.

    Example: lspe reproduce csl
             lspe reproduce zinc --protocol fast --epochs 60 --seeds 1 --hours 8 --out runs/zinc-fast
             lspe reproduce --show --out runs/zinc-fast
    """
    import lspe.reproduce
    from lspe.training.distributed import is_first
    from lspe.training.progress import Progress, progress_for_stdout

    what: dict[str, Any] = {"only": only or [], "seeds": seeds, "epochs": epochs, "protocol": protocol}
    if show:
        _print(lspe.reproduce.show(names or [], out, only=only or [], results=results), out)
        if names:
            jobs = lspe.reproduce.make_plan(names, out, **what).jobs
            typer.echo(lspe.reproduce.look(jobs if seeds else lspe.reproduce.of_begun_seeds(jobs)).in_words())
        return
    if not names:
        raise UserError("which table? lspe reproduce csl, for instance; lspe reproduce --help lists them")
    try:
        found = lspe.reproduce.reproduce(
            names,
            out,
            **what,
            hours=hours,
            results=results,
            root=root,
            devices=devices,
            threads=threads,
            progress=progress_for_stdout() if is_first() else Progress(),
        )
    except KeyboardInterrupt:
        typer.echo("interrupted; what is finished is kept. The same command goes on.", err=True)
        raise typer.Exit(130) from None
    if is_first():
        _print(found, out)
        for name in found:
            typer.echo(f"written: {out / lspe.reproduce.file_name(name)}.csv, .md, .png")
        typer.echo(lspe.reproduce.look(lspe.reproduce.make_plan(names, out, **what).jobs).in_words())
    if any(result.problem for table in found.values() for result in table):
        raise typer.Exit(1)


def _print(found: "Mapping[str, Sequence[Result]]", out: Path) -> None:
    from rich.table import Table

    from lspe.cli.console import console
    from lspe.reproduce.results import notes_as_text, rows_of_text

    screen = console(pipe_width=WIDE_ENOUGH)
    if not found:
        screen.print(f"{out} has no runs", highlight=False)
    for name, results in found.items():
        header, *rows = rows_of_text(results, name)
        table = Table(box=None, title=name, title_justify="left")
        for column in header:
            table.add_column(column, no_wrap=True)
        for row in rows:
            table.add_row(*row)
        screen.print(table)
        for line in notes_as_text(results):
            screen.print(line, highlight=False, markup=False)
