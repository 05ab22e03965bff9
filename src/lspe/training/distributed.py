"""What training needs to know of other processes; with one process everything here is trivial."""

import atexit
import os

import torch
from torch import Tensor, distributed, nn


def world_size() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if _have_met() else 1


def rank() -> int:
    """The number of this process among them."""
    return distributed.get_rank() if _have_met() else 0


def is_first() -> bool:
    """Whether this process is the one that writes and prints.

    Known before the processes have met, from what torchrun, SLURM or Lightning tell each of them.
    """
    if _have_met():
        return rank() == 0
    for name in ("RANK", "SLURM_PROCID"):
        if name in os.environ:
            return os.environ[name] == "0"
    return os.environ.get("LOCAL_RANK", "0") == os.environ.get("NODE_RANK", "0") == "0"


def add_up(values: Tensor) -> Tensor:
    """The sum of ``values`` over all processes."""
    if world_size() > 1:
        values = values.clone()
        distributed.all_reduce(values)
    return values


def share_statistics(network: nn.Module) -> None:
    """Give all processes the mean of their running statistics (BatchNorm's buffers)."""
    statistics = [buffer for buffer in network.buffers() if buffer.is_floating_point()]
    if world_size() > 1 and statistics:
        mean = add_up(torch.cat([one.flatten() for one in statistics])) / world_size()
        for one, part in zip(statistics, mean.split([one.numel() for one in statistics]), strict=True):
            one.copy_(part.view_as(one))


def wait_for_all() -> None:
    """Go on when all processes have come here."""
    if world_size() > 1:
        distributed.barrier()


def part_at_exit() -> None:
    """Leave the other processes when this one ends, while Python still runs.

    The threads that carry the sums let go of tensors a moment later than those who wait for them. Where that falls into
    the end of Python the process is aborted, and Lightning kills the others with it. To be called after a training that
    ended well: after one that failed, leaving could wait for others that have failed, too.
    """
    atexit.unregister(_part)
    atexit.register(_part)


def _part() -> None:
    if _have_met():
        distributed.destroy_process_group()


def _have_met() -> bool:
    return distributed.is_available() and distributed.is_initialized()
