"""What is predicted, and the scores by which predictions are judged."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from lspe.config import Strict
from lspe.data.words import TaskKind

Metric = Literal["mae", "rmse", "r2", "roc_auc", "ap", "accuracy"]


class Task(Strict):
    """What is predicted: ``outputs`` numbers, independent yes/no labels, or one of as many classes."""

    kind: TaskKind
    outputs: Annotated[int, Field(ge=1)]
    metric: Metric


SCORES: dict[TaskKind, tuple[Metric, ...]] = {
    "regression": ("mae", "rmse", "r2"),
    "binary": ("roc_auc", "ap"),
    "multiclass": ("accuracy",),
}
"""The scores of each kind of task; all are always computed, one of them counts."""

LOWER_IS_BETTER = frozenset({"mae", "rmse", "loss"})


def goodness(metric: str, value: float) -> float:
    """``value`` with the sign that makes greater better."""
    return -value if metric in LOWER_IS_BETTER else value


def format_score(metric: str, value: float | Mapping[str, float] | None) -> str:
    """A score, or mean ± standard deviation, with as many digits as make sense for it; – if it is not defined."""
    if value is None or value != value:
        return "–"
    digits = 2 if metric == "accuracy" else 4
    if isinstance(value, Mapping):
        return f"{value['mean']:.{digits}f} ± {value['sd']:.{digits}f}"
    return f"{value:.{digits}f}"
