"""What is predicted, and the scores by which predictions are judged."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from lspe.config import Strict
from lspe.data.words import Level, TaskKind

Metric = Literal[
    "mae", "rmse", "r2", "roc_auc", "ap", "accuracy", "balanced_accuracy", "mrr", "hits@20", "hits@50", "hits@100"
]


class Task(Strict):
    """What is predicted of each graph, node or edge: ``outputs`` numbers, yes/no labels, or one of as many classes; of
    each link whether it is there.

    The metric also chooses the loss: squares where the mean absolute error does not count, classes that weigh the same
    however frequent they are where the balanced accuracy does.
    """

    level: Level = "graph"
    kind: TaskKind
    outputs: Annotated[int, Field(ge=1)]
    metric: Metric


SCORES: dict[TaskKind, tuple[Metric, ...]] = {
    "regression": ("mae", "rmse", "r2"),
    "binary": ("roc_auc", "ap"),
    "multiclass": ("accuracy", "balanced_accuracy"),
}
"""The scores of each kind of task; all are always computed, one of them counts."""

LINK_SCORES: tuple[Metric, ...] = (*SCORES["binary"], "mrr", "hits@20", "hits@50", "hits@100")
"""Those of links, of which it also counts how many of them stand at the very top."""


def scores_for(kind: TaskKind, level: Level) -> tuple[Metric, ...]:
    """The scores of a task."""
    return LINK_SCORES if level == "link" else SCORES[kind]


LOWER_IS_BETTER = frozenset({"mae", "rmse", "loss"})


def goodness(metric: str, value: float) -> float:
    """``value`` with the sign that makes greater better."""
    return -value if metric in LOWER_IS_BETTER else value


def format_score(metric: str, value: float | Mapping[str, float] | None) -> str:
    """A score, or mean ± standard deviation, with as many digits as make sense for it; – if it is not defined."""
    if value is None or value != value:
        return "–"
    digits = 2 if metric in ("accuracy", "balanced_accuracy") else 4
    if isinstance(value, Mapping):
        return f"{value['mean']:.{digits}f} ± {value['sd']:.{digits}f}"
    return f"{value:.{digits}f}"
