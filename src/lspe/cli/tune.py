"""``lspe tune``."""

from pathlib import Path
from typing import Annotated

import typer

from lspe.data.words import Fragments, SplitKind, TaskKind


def tune(
    data: Annotated[str, typer.Option(metavar="FILE", help="Table with SMILES.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the search is kept; the same folder goes on.")],
    minutes: Annotated[float, typer.Option(metavar="N", min=0.01, help="Time to search.")] = 30,
    trials: Annotated[int | None, typer.Option(metavar="N", min=1, help="At most so many finished trials.")] = None,
    target: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="What to learn; repeat.")] = None,
    smiles_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="Where the SMILES are.")] = None,
    task: Annotated[TaskKind | None, typer.Option(metavar="KIND", help="regression, binary or multiclass.")] = None,
    split: Annotated[SplitKind | None, typer.Option(metavar="KIND", help="random, scaffold, time or column.")] = None,
    split_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Which says train, val or test; or when.")
    ] = None,
    fragments: Annotated[Fragments, typer.Option(metavar="DO", help="Salts: keep, largest or error.")] = "keep",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value that is not searched.")
    ] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="Otherwise all cores.")] = None,
) -> None:
    """Search for a better network and training for a table, judged on its validation part.

    What was found is written as a configuration that lspe train takes. A search that was ended goes on when it is
    called again, until its minutes are used up.

    Example: lspe tune --data solubility.csv --target logS --minutes 60 --out tuned
    """
    from lspe.sources import adjusted, experiment_for
    from lspe.tuning import tune as search

    table = {
        "targets": tuple(target) if target else None,
        "smiles": smiles_column,
        "task": task,
        "weight": None,
        "extra": (),
        "split": split or ("column" if split_column else None),
        "split_column": split_column,
        "folds": None,
        "fragments": fragments,
    }
    experiment, _ = experiment_for(data, None, table)
    experiment = adjusted(experiment, settings=settings or [])
    found = search(experiment, out, minutes=minutes, trials=trials, threads=threads, say=typer.echo)
    better = ""
    if found.first_loss is not None:
        better = f" (the default: {found.first_loss:.4f})"
    typer.echo(f"lowest validation loss of {found.trials} trials: {found.loss:.4f}{better}")
    typer.echo(f"how it went: {found.path.with_name('history.png')}, {found.path.with_name('trials.csv')}")
    typer.echo(f"train it with:\n  lspe train {found.path} --out runs/tuned")
