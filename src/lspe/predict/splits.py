"""What a run predicts for a part of its own data, beside what is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from lspe.data import GraphData, PackedGraphs
from lspe.data.packed.links import LinkGraphs
from lspe.data.packed.targets import is_known
from lspe.data.words import Level, TaskKind
from lspe.experiment import Task
from lspe.files import write_table
from lspe.files.tables import rounded
from lspe.predict.member import GraphsWithEncodings, Member
from lspe.predict.naming import HIGH, LOW, output_names
from lspe.training.fitting import seen_by_member
from lspe.training.objective import Objective
from lspe.training.run import Run


@dataclass(frozen=True)
class SplitPredictions:
    """True and predicted values of some graphs, nodes, edges or links.

    - `y` [M, T] (NaN where a label is missing), or [M] class numbers;
    - `predicted` [M, outputs]: values in original units, or probabilities;
    - `names`: columns [M] that say of what: ``row``, the graph's row in the table it comes from, else its number in
      the data; of nodes ``graph`` and ``node``, its number within the graph; of edges and links ``graph``, ``source``
      and ``target``;
    - `molecules`: SMILES and names [M] by the columns they are written to, where there are any;
    - `half_widths`: of the intervals around `predicted`, of the same shape, where there are any.
    """

    level: Level
    task: TaskKind
    task_names: tuple[str, ...]
    class_names: tuple[str, ...]
    y: NDArray[np.float64]
    predicted: NDArray[np.float64]
    names: dict[str, NDArray[np.int64]]
    molecules: Mapping[str, Sequence[str]] = field(default_factory=dict)
    half_widths: NDArray[np.float64] | None = None

    def write(self, path: Path) -> None:
        """As a table, a row per graph, node, edge or link."""
        about = (self.task, self.task_names, self.class_names)
        columns = dict(zip(output_names(*about), self.predicted.T, strict=True))
        if self.half_widths is not None:
            for what, ends in ((LOW, self.predicted - self.half_widths), (HIGH, self.predicted + self.half_widths)):
                columns |= dict(zip(output_names(*about, what), ends.T, strict=True))
        names = np.stack([*self.names.values()], axis=1).tolist()
        rows = []
        everything = zip(names, self.y.tolist(), np.stack([*columns.values()], axis=1), strict=True)
        for position, (name, true, predicted) in enumerate(everything):
            labels = [self.class_names[int(true)]] if self.task == "multiclass" else [rounded(one) for one in true]
            rows.append(
                {
                    **dict(zip(self.names, name, strict=True)),
                    **{name: texts[position] for name, texts in self.molecules.items()},
                    **dict(zip(self.task_names, labels, strict=True)),
                    **dict(zip(columns, map(rounded, predicted.tolist()), strict=True)),
                }
            )
        write_table(path, rows)


def predict_split(run: Run, data: GraphData, split: str = "test") -> SplitPredictions:
    """The predictions of a run for one split of the data it was trained on; its fold is chosen where it has one."""
    if run.config.fold is not None and data.folds:
        data = data.fold(run.config.fold)
    graphs = seen_by_member(run.config, data).split(split)
    predicted = Member.of_run(run).values(GraphsWithEncodings(graphs))
    y = graphs.y
    known = is_known(y)
    texts = {} if data.level != "graph" else {"smiles": data.smiles, "name": data.molecule_names}
    chosen = graphs.numbers().tolist()
    return SplitPredictions(
        data.level,
        data.task,
        data.task_names,
        data.class_names,
        y[known].astype(np.float64),
        predicted[known],
        {name: column[known].astype(np.int64) for name, column in _names(graphs, data.level).items()},
        {
            column: [values[one] for one, is_there in zip(chosen, known.tolist(), strict=True) if is_there]
            for column, values in texts.items()
            if values is not None
        },
    )


def _names(graphs: PackedGraphs, level: Level) -> dict[str, NDArray[np.integer]]:
    """What says to which graph, node, edge or pair each target belongs."""
    if level == "graph":
        return {"row": graphs.column("table_row") if "table_row" in graphs.graph else graphs.numbers()}
    if isinstance(graphs, LinkGraphs):
        source, target = graphs.pairs[:, graphs.pair_rows]
        return {"graph": graphs.numbers().repeat(graphs.num_pairs), "source": source, "target": target}
    if level == "edge":
        rows = graphs.rows("edge")
        return {
            "graph": graphs.numbers().repeat(graphs.num_edges),
            "source": graphs.source[rows],
            "target": graphs.target[rows],
        }
    number = graphs.numbers().repeat(graphs.num_nodes)
    return {"graph": number, "node": graphs.rows("node") - graphs.node_ptr[number]}


def together(parts: Sequence[SplitPredictions]) -> SplitPredictions:
    """The predictions of several runs of one experiment one after the other: of its folds, or of its seeds."""
    first = parts[0]
    half_widths = [part.half_widths for part in parts if part.half_widths is not None]
    return SplitPredictions(
        first.level,
        first.task,
        first.task_names,
        first.class_names,
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.predicted for part in parts]),
        {name: np.concatenate([part.names[name] for part in parts]) for name in first.names},
        {column: [text for part in parts for text in part.molecules[column]] for column in first.molecules},
        np.concatenate(half_widths) if len(half_widths) == len(parts) else None,
    )


def scores_of(predictions: SplitPredictions) -> dict[str, float | None]:
    """All scores of the task; ``None`` where one is not defined."""
    outputs = predictions.predicted.shape[1]
    task = Task(level=predictions.level, kind=predictions.task, outputs=outputs, metric="mae")
    scores = Objective(task).scores()
    scores.distributed_available_fn = lambda: False  # this process has all of them, whether there are others or not
    truth = torch.from_numpy(predictions.y)
    scores.update(torch.from_numpy(predictions.predicted), truth.long() if task.kind == "multiclass" else truth)
    return {name: None if value != value else value for name, value in scores.compute().items()}


def scores_by_target(predictions: SplitPredictions) -> dict[str, dict[str, float | None]]:
    """The scores of each target; of a multi-class one there is nothing to tell apart."""
    if predictions.task == "multiclass":
        return {}
    return {
        name: scores_of(
            replace(predictions, y=predictions.y[:, [number]], predicted=predictions.predicted[:, [number]])
        )
        for number, name in enumerate(predictions.task_names)
    }
