"""What columns of predictions are called."""

from collections.abc import Sequence

from lspe.data.words import TaskKind

SD = "sd"
LOW, HIGH = "low", "high"


def output_names(
    task: TaskKind, task_names: Sequence[str], class_names: Sequence[str], what: str | None = None
) -> list[str]:
    """A name for each output: ``logS_predicted``, ``toxic_probability``, ``colour_probability_red``.

    ``what`` stands in place of ``predicted`` and ``probability`` where it is given.
    """
    what = what or ("predicted" if task == "regression" else "probability")
    if task == "multiclass":
        return [f"{name}_{what}_{label}" for name in task_names for label in class_names]
    return [f"{name}_{what}" for name in task_names]
