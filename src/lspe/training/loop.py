"""Lightning's trainer, as it is used here, and what others may hang into it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lspe.training.distributed import part_at_exit
from lspe.training.module import TrainingError, TrainingModule

if TYPE_CHECKING:
    from lightning.pytorch import Callback
    from lightning.pytorch.loggers import Logger


def run_epochs(
    module: TrainingModule,
    counter: Callback,
    epochs: int,
    *,
    device: str,
    devices: int = 1,
    nodes: int = 1,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
) -> None:
    """Train for some epochs; ``counter`` counts them (:meth:`TrainingModule.finish_epoch`) and may stop earlier.

    Lightning's trainer has all switched off that costs time or prints: bars and checkpoints are ours, and what is
    logged is the row of metrics.csv.
    """
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import Checkpoint
    from lightning.pytorch.strategies import DDPStrategy

    if any(isinstance(callback, Checkpoint) for callback in callbacks):
        raise TrainingError("a run folder has checkpoints of its own, last.ckpt and best.ckpt: leave the callback out")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    module.is_watched = bool(callbacks)
    strategy: Any = "auto"
    if devices * nodes > 1:
        strategy = DDPStrategy(find_unused_parameters=module.leaves_parameters_unused())
    trainer = Trainer(
        accelerator="gpu" if device == "cuda" else device,
        devices=devices,
        num_nodes=nodes,
        strategy=strategy,
        max_epochs=epochs,
        callbacks=[counter, *callbacks],
        limit_val_batches=0,
        logger=list(loggers) or False,
        log_every_n_steps=1 if loggers else None,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*LeafSpec.* is deprecated", FutureWarning)  # Lightning's own use
        trainer.fit(module)
    part_at_exit()


def tensorboard_logger(folder: Path) -> Logger:
    """Writes TensorBoard's files into a run folder."""
    from lightning.pytorch.loggers import TensorBoardLogger

    try:
        return TensorBoardLogger(folder, name="", version="tensorboard", default_hp_metric=False)
    except ImportError:
        raise TrainingError("TensorBoard is not installed: pip install 'lspe[tensorboard]'") from None
