"""A run that goes on: whether it may, whether it had ended, and what is not as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from lspe.experiment.value import Experiment
from lspe.training import checkpoint
from lspe.training.callbacks import LAST, epoch_of_lowest_loss
from lspe.training.run import RunError
from lspe.training.stopping import reason_to_stop


def reason_it_ended(experiment: Experiment, state: dict[str, Any], folder: Path) -> str:
    """Why a run had ended at the state of a checkpoint; '' if it goes on."""
    with checkpoint.in_use(folder / LAST):
        lr = state["optimizer"]["param_groups"][0]["lr"]
        return state.get("stopped") or reason_to_stop(
            experiment.training.protocol,
            epoch=state["epoch"],
            seconds=state["seconds"],
            lr=lr,
            lowest=epoch_of_lowest_loss(state["history"]),
        )


def check_same(old: Experiment, new: Experiment, folder: Path) -> None:
    """A run goes on as it began; only limits may be moved, where what came first does not depend on them."""
    before, after = _flat(old.model_dump()), _flat(new.model_dump())
    movable = set()
    if new.training.protocol.may_be_prolonged:
        movable = {"training.protocol.max_epochs", "training.protocol.max_hours"}
    for place in sorted((before.keys() | after.keys()) - movable):
        if before.get(place) != after.get(place):
            raise RunError(
                f"{folder} was begun with {place} = {before.get(place)}, not {after.get(place)}: "
                "leave the option out to go on, or choose another --out for a new run"
            )


def _flat(values: Any, place: str = "") -> dict[str, Any]:
    if not isinstance(values, dict):
        return {place: values}
    flat: dict[str, Any] = {}
    for name, below in values.items():
        flat |= _flat(below, f"{place}.{name}" if place else name)
    return flat


def differences(state: dict[str, Any], threads: int, devices: int) -> list[str]:
    """What is not as it was when the run began, so that it may not go on to the last digit as it would have."""
    now = {"threads": threads, "processes": devices, "torch": torch.__version__}
    return [
        f"the run was begun with {what} {state[what]} and goes on with {new}: last digits may differ"
        for what, new in now.items()
        if state[what] != new
    ]
