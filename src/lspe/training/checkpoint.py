"""Checkpoints: plain values and tensors in one file that is always whole.

Lightning's own checkpoints hold the state of its loops and callbacks, which changes with its version, and are
written in place. Ours hold only what a run needs to go on exactly or to predict, load with ``weights_only=True``
(nothing in them is unpickled into objects), and appear under their name only when complete and on the disk.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lspe.errors import UserError
from lspe.files import complete_or_nothing

FORMAT = 1


class CheckpointError(UserError):
    """A checkpoint that cannot be written or read."""


def copied(value: Any) -> Any:
    """A state as it is now: tensors in it are copied to the CPU's memory."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(copied(one) for one in value)
    return value


def save(path: Path, state: dict[str, Any]) -> None:
    """Write ``state`` to ``path``; the old file stays as it is until the new one is complete."""
    try:
        with complete_or_nothing(path) as temporary, temporary.open("wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
    except (OSError, RuntimeError) as error:
        kept = f"; the one of before ({path.name}) is intact" if path.exists() else ""
        raise CheckpointError(
            f"{path}: the checkpoint could not be written ({error}){kept}. "
            f"Make room on the disk and go on with: lspe train {path.parent} --resume"
        ) from error


def load(path: Path) -> dict[str, Any]:
    """Read what :func:`save` wrote."""
    if not path.is_file():
        raise CheckpointError(f"{path}: there is no such checkpoint")
    try:
        with zipfile.ZipFile(path) as parts:
            if bad := parts.testzip():  # torch reads altered weights without a word
                raise ValueError(f"{bad} does not match its checksum")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the file may hold anything
        raise CheckpointError(f"{path} is damaged and cannot be read ({_first_line(error)}). {_advice(path)}") from None
    if not isinstance(state, dict) or "format" not in state:
        raise CheckpointError(f"{path} is not a checkpoint of lspe. {_advice(path)}")
    if state["format"] != FORMAT:
        raise CheckpointError(
            f"{path} has format {state['format']}; this lspe reads format {FORMAT}: use the version that wrote it"
        )
    return state


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Say of a checkpoint that cannot be put to use that it is damaged or another run's."""
    try:
        yield
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CheckpointError(
            f"{path} does not fit the network and training of {path.parent}: it is damaged or another run's "
            f"({_first_line(error)}). {_advice(path)}"
        ) from error


def _advice(path: Path) -> str:
    other = path.with_name("best.ckpt" if path.name == "last.ckpt" else "last.ckpt")
    if other.is_file():
        return f"To go on from {other.name} instead, copy it over {path.name}; to start again, delete {path.name}."
    return f"Delete it to start again, or put back a copy of {path.name}."


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    if not text or isinstance(error, KeyError):  # of which the text is only the key
        return f"{type(error).__name__} {text}".strip()
    lines = text.splitlines()
    return lines[1].strip() if lines[0].endswith(":") and len(lines) > 1 else lines[0]
