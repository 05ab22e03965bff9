"""What a run predicts for a part of its own data, beside what is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lspe.data import GraphData
from lspe.data.words import TaskKind
from lspe.files import write_table
from lspe.files.tables import DIGITS
from lspe.predict.member import GraphsWithEncodings, Member
from lspe.predict.naming import output_names
from lspe.training.fitting import seen_by_member
from lspe.training.run import Run


@dataclass(frozen=True)
class SplitPredictions:
    """True and predicted values of some graphs.

    - `y` [M, T] (NaN where a label is missing), or [M] class numbers;
    - `predicted` [M, outputs]: values in original units, or probabilities;
    - `numbers` [M]: the graphs' rows in the table they come from, else their numbers in the data.
    """

    task: TaskKind
    task_names: tuple[str, ...]
    class_names: tuple[str, ...]
    y: NDArray[np.float64]
    predicted: NDArray[np.float64]
    numbers: NDArray[np.int64]

    def write(self, path: Path) -> None:
        """As a table, a row per graph."""
        names = output_names(self.task, self.task_names, self.class_names)
        rows = []
        for number, true, predicted in zip(self.numbers.tolist(), self.y.tolist(), self.predicted, strict=True):
            labels = [self.class_names[int(true)]] if self.task == "multiclass" else [_rounded(one) for one in true]
            rows.append(
                {
                    "row": number,
                    **dict(zip(self.task_names, labels, strict=True)),
                    **dict(zip(names, map(_rounded, predicted.tolist()), strict=True)),
                }
            )
        write_table(path, rows)


def _rounded(value: float) -> float | None:
    """With the digits float32 has; ``None`` where there is no value."""
    return None if value != value else float(f"{value:.{DIGITS}g}")


def predict_split(run: Run, data: GraphData, split: str = "test") -> SplitPredictions:
    """The predictions of a run for one split of the data it was trained on; its fold is chosen where it has one."""
    if run.config.fold is not None and data.folds:
        data = data.fold(run.config.fold)
    graphs = seen_by_member(run.config, data).split(split)
    predicted, _ = Member.of_run(run).apply(GraphsWithEncodings(graphs))
    numbers = graphs.column("table_row") if "table_row" in graphs.graph else graphs.numbers()
    return SplitPredictions(
        data.task, data.task_names, data.class_names, graphs.y.astype(np.float64), predicted, numbers.astype(np.int64)
    )


def together(parts: Sequence[SplitPredictions]) -> SplitPredictions:
    """The predictions of several runs of one experiment one after the other: of its folds, or of its seeds."""
    first = parts[0]
    return SplitPredictions(
        first.task,
        first.task_names,
        first.class_names,
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.predicted for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )
