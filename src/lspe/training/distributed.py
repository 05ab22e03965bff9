"""What training needs to know of other processes; with one process everything here is trivial."""

from torch import Tensor, distributed


def world_size() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if _is_running() else 1


def rank() -> int:
    """The number of this process among them."""
    return distributed.get_rank() if _is_running() else 0


def add_up(values: Tensor) -> Tensor:
    """The sum of ``values`` over all processes."""
    if world_size() > 1:
        values = values.clone()
        distributed.all_reduce(values)
    return values


def wait_for_all() -> None:
    """Go on when all processes have come here."""
    if world_size() > 1:
        distributed.barrier()


def _is_running() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def is_first() -> bool:
    """Whether this process is the one that writes and prints; known before the processes have met."""
    from lightning.fabric.utilities.rank_zero import rank_zero_only

    return int(rank_zero_only.rank) == 0
