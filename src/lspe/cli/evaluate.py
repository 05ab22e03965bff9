"""``lspe evaluate``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lspe.data.words import SplitName
from lspe.training.words import Which


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    split: Annotated[SplitName, typer.Option(help="Which part of the data.")] = "test",
    weights: Annotated[Which, typer.Option(help="Of the last or best epoch, or as reported.")] = "reported",
    as_json: Annotated[bool, typer.Option("--json", help="Print an object instead of a table.")] = False,
    root: Annotated[Path | None, typer.Option(help="Where data sets are.")] = None,
) -> None:
    """Score a trained network on a part of its data.

    Example: lspe evaluate runs/zinc-gatedgcn-lspe-seed41 --split val
    """
    from lspe.experiment.task import format_score
    from lspe.training.seeds_and_folds import evaluate_runs

    results = evaluate_runs(run, split, weights, root=root)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
        return

    from rich.table import Table

    from lspe.cli.console import console

    table = Table(box=None)
    names = list(next(iter(results.values())))
    for header in ("run", *names):
        table.add_column(header, justify="left" if header == "run" else "right")
    for name, scores in results.items():
        table.add_row(name, *(format_score(metric, scores[metric]) for metric in names))
    console().print(table)
