"""``lspe data``: what there is, figures and a picture, preparing and checking."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from lspe.data.words import Level
from lspe.encodings.kinds import KINDS

app = typer.Typer(
    help="The data sets: list them, look at one, prepare it beforehand, check what is prepared.", no_args_is_help=True
)

Root = Annotated[
    Path | None,
    typer.Option("--root", help="Folder with the benchmarks' files; else $LSPE_DATA, else the user's cache."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command("list")
def list_(root: Root = None, as_json: AsJson = False) -> None:
    """List the benchmarks: what each is, where it comes from, whether it is prepared.

    Example: lspe data list
    """
    from lspe.data.benchmarks.inventory import inventory

    entries = inventory(root)
    if as_json:
        rows = [{**vars(entry), "prepared": [str(path) for path in entry.prepared]} for entry in entries]
        typer.echo(json.dumps(rows, indent=2))
        return
    from rich.table import Table

    from lspe.cli.console import console

    table = Table("name", "what", "source", "prepared", box=None)
    for entry in entries:
        table.add_row(entry.name, entry.summary, entry.source, "yes" if entry.prepared else "–")
    console().print(table)


@app.command()
def info(
    name: Annotated[
        str,
        typer.Argument(
            help="A benchmark's name, a table (CSV, TSV, Parquet) of your own, or own graphs (file, folder)."
        ),
    ],
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Column to learn, of a table; may repeat.")
    ] = None,
    level: Annotated[
        Level | None, typer.Option(help="Of own graphs: targets belong to graph, node, edge or link.")
    ] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Draw some of the graphs into this file.")] = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Print figures about a data set: graphs, mean nodes and edges, tasks, splits.

    Example: lspe data info zinc --picture zinc.png
    """
    from lspe.data import load_benchmark, read_table
    from lspe.data.graphs.recognition import are_graphs
    from lspe.data.statistics import statistics
    from lspe.experiment import GraphSource
    from lspe.files import check_picture
    from lspe.plots.samples import draw_samples

    if picture is not None:
        check_picture(picture, (".png", ".svg", ".pdf", ".jpg"))
    if are_graphs(name):
        data = GraphSource(path=name, level=level).load()
    elif os.path.isfile(name):
        data = read_table(name, targets=target or None, on_invalid="skip").to_graphs()
    else:
        data = load_benchmark(name, root)
    figures = statistics(data)
    typer.echo(json.dumps(figures, indent=2) if as_json else "\n".join(_lines(figures)))
    if data.report is not None and not as_json:
        typer.echo(data.report.summary())
    if picture is not None:
        draw_samples(data, picture)
        typer.echo(f"picture: {picture}", err=True)


def _lines(figures: dict[str, Any]) -> list[str]:
    def text(value: Any) -> str:
        match value:
            case float():
                return f"{value:,.4f}"
            case int():
                return f"{value:,}"
            case dict():
                return ", ".join(f"{key} {text(one)}" for key, one in value.items()) or "–"
            case list():
                return ", ".join(map(text, value))
            case _:
                return str(value)

    return [f"{key.replace('_', ' '):<22}{text(value)}" for key, value in figures.items()]


@app.command()
def prepare(
    names: Annotated[list[str], typer.Argument(help="Benchmarks to download and convert.")],
    encoding: Annotated[str | None, typer.Option(help=f"Encoding to compute too: {', '.join(KINDS)}.")] = None,
    k: Annotated[int | None, typer.Option("-k", help="Columns of the encoding.")] = None,
    root: Root = None,
) -> None:
    """Download and convert data sets, and compute an encoding, so that the first training starts at once.

    Example: lspe data prepare zinc moltox21 --encoding rwpe -k 20
    """
    from lspe.data import load_benchmark

    for name in names:
        data = load_benchmark(name, root, encoding=encoding, k=k)
        typer.echo(f"{name}: {len(data.graphs):,} graphs in {data.graphs.path}")


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets to check; all that are prepared if none.")
    ] = None,
) -> None:
    """Check prepared data sets and encodings against their checksums.

    A damaged file is never used: it is made anew the next time it is needed. Ends with code 1 if there is one.

    Example: lspe data verify
    """
    from lspe.data.benchmarks.inventory import verify as check

    problems = check(names or ())
    for path, problem in problems.items():
        typer.echo(f"{'DAMAGED' if problem else 'ok':<9}{path}")
    if not problems:
        typer.echo("nothing is prepared")
    if any(problems.values()):
        raise typer.Exit(1)
