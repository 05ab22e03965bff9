"""The scores that are reported."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torchmetrics import Metric
from torchmetrics.functional import mean_absolute_error, mean_squared_error, r2_score
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_average_precision,
    multiclass_stat_scores,
)
from torchmetrics.utilities import dim_zero_cat

from lspe.devices import home_of_float64
from lspe.training.objective import Objective
from lspe.training.rankings import RANKINGS


class Scores(Metric):
    """All scores of a task over a whole split, exact, also when several processes hold parts of it.

    With several targets a score is the mean over them. As in OGB's evaluator a yes/no target counts only if both
    classes are among its known labels; a score that no target allows is NaN.
    """

    full_state_update = False
    output: list[Tensor]
    target: list[Tensor]

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.objective = objective
        self.add_state("output", default=[], dist_reduce_fx="cat")
        self.add_state("target", default=[], dist_reduce_fx="cat")

    def update(self, output: Tensor, y: Tensor) -> None:
        """Of nodes, edges and links only those are kept that are known, which may be few; graphs are at the end."""
        output = output.detach()
        if self.objective.task.level != "graph":
            known = self.objective.known(y)
            output, y = output[known], y[known]
        self.output.append(output)
        self.target.append(y)

    def compute(self) -> dict[str, float]:
        output, target = dim_zero_cat(self.output), dim_zero_cat(self.target)
        known = self.objective.known(target)
        output, target = output[known], target[known]
        home = home_of_float64(output.device)
        output, target = output.to(home), target.to(home)
        task = self.objective.task
        if task.kind == "multiclass":
            return _accuracies(output, target.view(-1), task.outputs)
        functions = _BINARY
        if task.level == "link":
            functions = {**_BINARY, **RANKINGS}
        elif task.kind == "regression":
            functions = _REGRESSION
            output = self.objective.predict(output.double())
        each = []
        for one, y in zip(output.T, target.T, strict=True):
            known = ~y.isnan()
            each.append({name: score(one[known].double(), y[known].double()) for name, score in functions.items()})
        return {name: _mean_of_defined([scores[name] for scores in each]) for name in functions}


def _accuracies(output: Tensor, y: Tensor, classes: int) -> dict[str, float]:
    """Percent of right answers: of all, and as the mean over the classes that occur of each one's own percentage."""
    if not y.numel():
        return {"accuracy": float("nan"), "balanced_accuracy": float("nan")}
    counts = multiclass_stat_scores(output, y, classes, average=None, validate_args=False).double()
    right, total = counts[:, 0], counts[:, -1]
    occurs = total > 0
    return {
        "accuracy": 100 * float(right.sum() / total.sum()),
        "balanced_accuracy": 100 * float((right[occurs] / total[occurs]).mean()),
    }


def _mean_of_defined(values: list[float]) -> float:
    defined = [value for value in values if value == value]
    return sum(defined) / len(defined) if defined else float("nan")


def _of_values(function: Callable[[Tensor, Tensor], Tensor], distinct: int = 1) -> Callable[[Tensor, Tensor], float]:
    def score(output: Tensor, y: Tensor) -> float:
        return float(function(output, y)) if y.unique().numel() >= distinct else float("nan")

    return score


def _of_ranks(function: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], float]:
    """Scores that depend on the order alone are given ranks, which no sigmoid can round to a tie."""

    def score(output: Tensor, y: Tensor) -> float:
        if y.unique().numel() < 2:
            return float("nan")
        values, rank = output.unique(return_inverse=True)
        return float(function(rank.double() / len(values), y.long(), validate_args=False))

    return score


_REGRESSION: dict[str, Callable[[Tensor, Tensor], float]] = {
    "mae": _of_values(mean_absolute_error),
    "rmse": _of_values(lambda output, y: mean_squared_error(output, y, squared=False)),
    "r2": _of_values(r2_score, distinct=2),
}
_BINARY: dict[str, Callable[[Tensor, Tensor], float]] = {
    "roc_auc": _of_ranks(binary_auroc),
    "ap": _of_ranks(binary_average_precision),
}
