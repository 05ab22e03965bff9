"""Train what a table needs, row by row and seed by seed, keeping what is finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lspe.data import DataError
from lspe.experiment.data import load_data
from lspe.experiment.overriding import override, with_epochs, with_protocol
from lspe.experiment.protocol import ProtocolKind
from lspe.experiment.reading import read_experiment
from lspe.experiment.value import Experiment
from lspe.locations import Root
from lspe.reproduce import figure, results
from lspe.reproduce.results import Result, collect
from lspe.reproduce.tables import ONE_SEED, Row, rows_of_table
from lspe.training.seeds_and_folds import train


def reproduce(
    name: str,
    folder: Path,
    *,
    seeds: int | None = None,
    epochs: int | None = None,
    protocol: ProtocolKind | None = None,
    root: Root = None,
    on_row: Callable[[Sequence[Result]], None] = lambda _: None,
    **options: Any,
) -> list[Result]:
    """Train every row of a table (or one preset) that is not finished yet, and write the table.

    Runs are in ``folder``/preset/seed…, the table in ``folder``/name.csv, .md and .png, written anew after every row,
    so that an interrupted call leaves a table of what there is and the next one goes on. A data set that is not
    there leaves its rows empty, with the reason; the others go on.

    Args:
        name: of a table (:data:`~lspe.reproduce.TABLES`) or a preset.
        folder: where runs and tables go.
        seeds: how many of the preset's seeds; the paper's four if not given (csl and nci: one).
        epochs: at most so many.
        protocol: instead of the preset's own.
        root: where data sets are.
        on_row: called with all results after every row.
        options: of :func:`lspe.training.fit`.

    """
    rows = rows_of_table(name)
    seeds = seeds or (1 if name in ONE_SEED else None)
    problems: dict[Row, str] = {}
    so_far = _results(rows, folder, problems)
    for row in rows:
        try:
            _train_row(row, folder, seeds, epochs, protocol, root, options)
        except DataError as error:
            problems[row] = str(error)
        so_far = _results(rows, folder, problems)
        results.write(so_far, folder, name.replace("/", "-"))
        on_row(so_far)
    figure.plot(so_far, name, folder / name.replace("/", "-"))
    return so_far


def _train_row(
    row: Row,
    folder: Path,
    seeds: int | None,
    epochs: int | None,
    protocol: ProtocolKind | None,
    root: Root,
    options: dict[str, Any],
) -> None:
    experiment = override(read_experiment(row.preset), row.settings)
    if protocol is not None:
        experiment = with_protocol(experiment, protocol)
    if epochs is not None:
        experiment = with_epochs(experiment, epochs)
    data = load_data(experiment, root)
    for seed in experiment.training.seeds[:seeds]:
        one: Experiment = experiment.model_copy(update={"seed": seed})
        train(one, data, folder / row.name / f"seed{seed}", resume=True, **options)


def _results(rows: Sequence[Row], folder: Path, problems: dict[Row, str]) -> list[Result]:
    return [collect(row, folder / row.name, problems.get(row, "")) for row in rows]
