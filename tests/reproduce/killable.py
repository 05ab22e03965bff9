"""A campaign of tiny trainings that writes down what it does, to be run in a process that is killed."""

import os
from pathlib import Path

import torch
from lightning.pytorch import Callback, Trainer

from lspe.reproduce import Row, campaign, reproduce
from lspe.reproduce.tables import TABLES
from lspe.training.module import TrainingModule

NAME = "tiny"
SETTINGS = ("model.layers=1", "model.hidden_dim=8", "training.batch_size=30")
ROWS = (Row("csl/gatedgcn", SETTINGS), Row("csl/gatedgcn-lspe", SETTINGS))
JOBS = 2 * 5
TABLES[NAME] = ROWS


class Diary(Callback):
    """A line when a training begins, with the epochs behind it, and for each epoch that is saved."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_start(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        self._write("begun", trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: TrainingModule) -> None:
        self._write("saved", trainer, pl_module)

    def _write(self, what: str, trainer: Trainer, module: TrainingModule) -> None:
        run = "/".join(trainer.callbacks[0].folder.parts[-4:])  # type: ignore[attr-defined]
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{run} {os.getpid()} {what} {module.epoch}\n".encode())  # at once, so that lines stay whole
        os.close(file)


def work(out: Path, diary: Path, epochs: int, environment: dict[str, str]) -> None:
    """Take part in the campaign in ``out`` until it is over."""
    os.environ.update(environment)
    torch.set_num_threads(1)
    campaign.SECONDS_BETWEEN_LOOKS = 0.05
    reproduce(NAME, out, seeds=1, epochs=epochs, device="cpu", threads=1, callbacks=[Diary(diary)])
