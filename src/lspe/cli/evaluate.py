"""``lspe evaluate``."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lspe.data.words import SplitName
from lspe.errors import UserError
from lspe.training.words import Which

if TYPE_CHECKING:
    from lspe.predict.splits import SplitPredictions


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", help="Other molecules with known labels, instead of its own data."),
    ] = None,
    split: Annotated[SplitName, typer.Option(help="Which part of the data.")] = "test",
    weights: Annotated[Which, typer.Option(help="Of the last or best epoch, or as reported.")] = "reported",
    as_json: Annotated[bool, typer.Option("--json", help="Print an object instead of a table.")] = False,
    root: Annotated[Path | None, typer.Option(help="Where data sets are.")] = None,
) -> None:
    """Score a trained network on a part of its data, or a model of molecules on another table.

    Examples: lspe evaluate runs/zinc-gatedgcn-lspe-seed41 --split val
              lspe evaluate runs/logS measured-since.csv
    """
    results = _on_own_data(run, split, weights, root) if table is None else _on_table(run, table, weights)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
        return

    from rich.table import Table

    from lspe.cli.console import console
    from lspe.experiment.task import format_score

    shown = Table(box=None)
    names = list(next(iter(results.values())))
    for header in ("run", *names):
        shown.add_column(header, justify="left" if header == "run" else "right")
    for name, scores in results.items():
        shown.add_row(name, *(format_score(metric, scores.get(metric)) for metric in names))
    console().print(shown)


def _on_own_data(run: Path, split: SplitName, weights: Which, root: Path | None) -> dict[str, Any]:
    """Of each network; on the test part also of all that predicts as one."""
    from lspe.blending import is_blended
    from lspe.experiment import load_data
    from lspe.predict import load
    from lspe.predict.scoring import predict_test
    from lspe.training.run import Run
    from lspe.training.seeds_and_folds import evaluate_runs

    opened = Run.open(run)
    table = opened.config.table
    if table is not None and not os.path.exists(table.path):
        raise UserError(
            f"the table that {run} was trained on, {table.path}, is not there any more: put it back, or name another "
            f"one with labels: lspe evaluate {run} TABLE. The scores of its test rows are in {run / 'summary.json'}"
        )
    results = evaluate_runs(run, split, weights, root=root)
    if split == "test" and opened.config.table is not None and opened.config.fold is None and is_blended(opened):
        data = load_data(opened.config, root)
        if not data.folds:
            results |= _of_all_together("together", predict_test(load(run, which=weights), data))
    return results


def _on_table(run: Path, table: Path, weights: Which) -> dict[str, Any]:
    """Of all that predicts as one, and of each target where there are several; rows that are not scored are named."""
    from lspe.data.report import first_few
    from lspe.predict import load
    from lspe.predict.scoring import predict_labelled

    predictions, report = predict_labelled(load(run, which=weights), table)
    count = report.used
    if count < report.rows:
        typer.echo(f"{report.rows - count:,} of {report.rows:,} rows left out: {first_few(report.findings)}", err=True)
    return _of_all_together(f"{count} molecule{'s' if count != 1 else ''}", predictions)


def _of_all_together(name: str, predictions: "SplitPredictions") -> dict[str, Any]:
    from lspe.predict.splits import scores_by_target, scores_of

    by_target = scores_by_target(predictions) if len(predictions.task_names) > 1 else {}
    return {name: scores_of(predictions), **by_target}
