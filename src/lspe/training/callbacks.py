"""What is written down while a network trains, and when training stops."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer

from lspe.experiment.task import goodness
from lspe.files import append_row, write_table
from lspe.training import checkpoint
from lspe.training.distributed import is_first
from lspe.training.module import EpochResult, TrainingModule
from lspe.training.progress import Progress
from lspe.training.run import HISTORY, go_on_with
from lspe.training.stopping import reason_to_stop

LAST = "last.ckpt"
BEST = "best.ckpt"
BY_CALLBACK = "a callback stopped it"


class Bookkeeper(Callback):
    """Keeps metrics.csv and the checkpoints, remembers the best epoch, and says when it is enough.

    The state at the end of each epoch is held in memory and written at most every ``every`` seconds, when training
    ends and when it is interrupted. Since every epoch follows from the end of the one before, going on
    from an older checkpoint only repeats epochs, with the same result.

    Args:
        folder: the run folder.
        metric: the score that is shown, and tells the best epoch unless ``best_by`` is ``loss``.
        progress: where to show what happens.
        threads: of this process.
        every: seconds between checkpoints.
        best_by: ``score`` or ``loss``, of the validation part.

    """

    def __init__(
        self,
        folder: Path,
        metric: str,
        progress: Progress,
        *,
        threads: int,
        every: float = 5.0,
        best_by: str = "score",
    ) -> None:
        self.folder = folder
        self.metric = metric
        self.progress = progress
        self.threads = threads
        self.every = every
        self.best_by = best_by
        self.history: list[dict[str, float | None]] = []
        self.best_epoch = 0
        self.best_goodness = -float("inf")
        self.stopped = ""
        self.interrupted: BaseException | None = None
        self._seconds_before = 0.0
        self._unwritten: dict[str, dict[str, Any]] = {}
        self._written_at = time.monotonic()
        self._last: dict[str, Any] = {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what was written into a checkpoint."""
        self.history = list(state["history"])
        self.best_epoch, self.best_goodness = state["best_epoch"], state["best_goodness"]
        self._seconds_before = state["seconds"]

    @property
    def seconds(self) -> float:
        """Time spent in training, that before an interruption included."""
        return self._seconds_before + time.monotonic() - self._started

    def setup(self, trainer: Trainer, pl_module: TrainingModule, stage: str) -> None:
        torch.set_num_threads(self.threads)
        pl_module.after_step = self.progress.step

    def on_train_start(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        self._started = time.monotonic()
        if is_first() and self.history:
            write_table(self.folder / HISTORY, self.history, then=go_on_with(self.folder))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        result = pl_module.finish_epoch()
        self.history.append(self._row(result))
        self._tell_others(trainer, pl_module)
        if is_better := self._is_better(result):
            self.best_epoch = result.epoch
        stop = reason_to_stop(
            pl_module.protocol,
            epoch=pl_module.epoch,
            seconds=self.seconds,
            lr=pl_module.lr,
            lowest=epoch_of_lowest_loss(self.history),
        )
        self.stopped = trainer.strategy.broadcast(stop)
        trainer.should_stop = bool(self.stopped)
        if not is_first():
            return
        state = {
            **pl_module.state(),
            "history": list(self.history),
            "best_epoch": self.best_epoch,
            "best_goodness": self.best_goodness,
            "seconds": self.seconds,
            "threads": torch.get_num_threads(),
            "processes": trainer.world_size,
            "torch": str(torch.__version__),
        }
        if is_better:
            self._unwritten[BEST] = state
        self._unwritten[LAST] = self._last = state
        self._record(result)
        if self.stopped or time.monotonic() - self._written_at >= self.every:
            self.write_checkpoints()

    def on_exception(self, trainer: Trainer, pl_module: TrainingModule, exception: BaseException) -> None:
        self.progress.end()
        if isinstance(exception, KeyboardInterrupt | SystemExit):
            self.interrupted = exception
        if not isinstance(exception, checkpoint.CheckpointError):
            self.write_checkpoints()

    def on_train_end(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        self.progress.end()
        if not self.stopped:
            self.stopped = BY_CALLBACK
            if is_first():
                self._unwritten[LAST] = {**self._last, "stopped": self.stopped}
                self.write_checkpoints()

    def write_checkpoints(self) -> None:
        """Write what is not on the disk yet, the best before the last."""
        for name in (BEST, LAST):
            if name in self._unwritten:
                checkpoint.save(self.folder / name, self._unwritten.pop(name))
        self._written_at = time.monotonic()

    def _is_better(self, result: EpochResult) -> bool:
        """The first of equal epochs stays the best; where the score is not defined the loss decides."""
        score = result.val.scores[self.metric]
        by_score = self.best_by == "score" and score == score
        new = goodness(self.metric, score) if by_score else goodness("loss", result.val.loss)
        if new <= self.best_goodness:
            return False
        self.best_goodness = new
        return True

    def _row(self, result: EpochResult) -> dict[str, float | None]:
        train, val = result.train.to_dict(), result.val.to_dict()
        return {
            "epoch": result.epoch,
            "lr": result.lr,
            "train_loss": train["loss"],
            f"train_{self.metric}": train[self.metric],
            "val_loss": val["loss"],
            f"val_{self.metric}": val[self.metric],
            "seconds": round(result.seconds, 3),
            f"{result.unit}_per_second": round(result.per_second, 1),
        }

    def _record(self, result: EpochResult) -> None:
        row = self.history[-1]
        path = self.folder / HISTORY
        if len(self.history) == 1:
            write_table(path, self.history, then=go_on_with(self.folder))
        else:
            append_row(path, row, then=go_on_with(self.folder))
        self.progress.epoch(result)

    def _tell_others(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        """The row of metrics.csv, to loggers and to callbacks that monitor one of its columns."""
        row = {name: value for name, value in self.history[-1].items() if value is not None}
        epoch = int(row.pop("epoch"))
        for logger in trainer.loggers:
            logger.log_metrics(row, step=epoch)
        pl_module.log_dict(row, logger=False, sync_dist=trainer.world_size > 1)


def epoch_of_lowest_loss(history: Sequence[Mapping[str, float | None]]) -> int:
    """The first epoch whose validation loss no other undercuts; 0 if there is none."""
    if not history:
        return 0
    return int(min(history, key=lambda row: row["val_loss"] or 0.0)["epoch"] or 0)
