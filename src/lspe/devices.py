"""Which devices there are, and what they can do."""

import torch

from lspe.errors import UserError


def choose_device(name: str) -> str:
    """``name`` if there is such a device; ``auto`` takes a GPU where there is one.

    A number may follow, as in ``cuda:1``.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    check_device(name)
    return name


def check_device(name: str, devices: int = 1) -> None:
    """Say so where there is no device ``name``, or where there are not as many as ``devices`` of them."""
    if name == "auto":
        return
    kind, _, number = name.partition(":")
    count = _count(kind)
    if not count or (number and not (number.isdecimal() and int(number) < count)):
        found = ", ".join(one for one in ("cpu", "cuda", "mps") if _count(one))
        raise UserError(f"there is no device {name!r} here; there is: {found}")
    if kind != "cpu" and devices > count:
        raise UserError(f"there are not {devices} devices {name!r} here, but {count}; choose --devices {count}")


def home_of_float64(device: torch.device) -> torch.device:
    """Where to compute in float64 with what is on ``device``: on it, or on the CPU where it has no float64."""
    return device if has_float64(device) else torch.device("cpu")


def has_float64(device: torch.device) -> bool:
    """Whether tensors on ``device`` may be float64; Apple's may not."""
    return device.type != "mps"


def _count(kind: str) -> int:
    """How many devices of a kind there are; of the CPU as many as one likes, counted as one."""
    if kind == "cuda":
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    return int(kind == "cpu" or (kind == "mps" and torch.backends.mps.is_available()))
