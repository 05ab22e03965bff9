"""Batches for training: an order drawn from seed and epoch alone, shared out among processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lspe.data.packed.sets import PackedGraphs

if TYPE_CHECKING:
    from torch_geometric.data import Batch


_HELD = 128
"""Graphs after which the memory is given back that holds them and, as the system reads ahead, megabytes around each."""
_AHEAD = 16
"""Batches that are read before they are needed, of a set that does not stay in memory."""


class BatchLoader:
    """Iterate over `graphs` in batches of `batch_size` graphs over all processes together.

    The order depends on `seed` and the epoch (:meth:`set_epoch`) and on nothing else, so a run that is
    resumed, or spread over another number of processes, sees the same global batches. Each of `world_size`
    processes takes its own contiguous part of every global batch; the parts differ by at most one graph.

    Every process takes the same number of steps. Where the last global batch holds fewer graphs than there
    are processes, some of them get a batch of no graphs (``batch.num_graphs == 0``) and must still take
    part in whatever the others do together; weight it with zero.

    Attributes:
        unit: what is gone through, and `count`, how many of them an epoch has.

    """

    unit = "graphs"

    def __init__(
        self,
        graphs: PackedGraphs,
        batch_size: int,
        *,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} does not exist among {world_size} processes")
        self.graphs = self._graphs_now = graphs
        self.count = len(graphs)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.rank = rank
        self.world_size = world_size
        self.drop_last = drop_last

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration."""
        self.epoch = epoch

    def __len__(self) -> int:
        whole, rest = divmod(self.count, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Batch]:
        self._graphs_now = self.graphs.in_epoch(self.seed, self.epoch)
        held = 0
        for step, indices in enumerate(self._announced()):
            yield self.batch(indices, step)
            held += len(indices)
            if held >= _HELD:
                self.graphs.let_go()
                held = 0

    @property
    def reads_ahead(self) -> bool:
        """Whether graphs are asked for before they are needed."""
        return self.graphs.outgrows_memory

    def _announced(self) -> Iterator[NDArray[np.int64]]:
        """What :meth:`indices` gives; graphs that are not in memory are asked for some batches ahead."""
        if not self.reads_ahead:
            yield from self.indices()
            return
        coming: deque[NDArray[np.int64]] = deque()
        for indices in self.indices():
            self.graphs.read_ahead(indices)
            coming.append(indices)
            if len(coming) > _AHEAD:
                yield coming.popleft()
        yield from coming

    def batch(self, indices: NDArray[np.int64], step: int) -> Batch:
        """What is learned from at some step of the epoch."""
        return self._graphs_now.batch(indices)

    def numbers(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where these stand in the whole set."""
        return self.graphs.numbers(indices)

    def indices(self) -> Iterator[NDArray[np.int64]]:
        """What is in each of this process's batches, by position among all that is gone through."""
        rng, count = np.random.default_rng([self.seed, self.epoch]), self.count
        order = rng.permutation(count) if self.shuffle else np.arange(count)
        for step in range(len(self)):
            chosen = order[step * self.batch_size : (step + 1) * self.batch_size]
            begin = self.rank * len(chosen) // self.world_size
            end = (self.rank + 1) * len(chosen) // self.world_size
            yield chosen[begin:end]
