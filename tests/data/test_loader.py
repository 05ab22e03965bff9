import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lspe.data import BatchLoader, PackedGraphs


def numbered(count: int) -> PackedGraphs:
    """Graphs of one node that know their number."""
    return PackedGraphs.from_arrays(
        np.ones(count), np.zeros(count), np.empty((2, 0), dtype=np.int64), graph={"y": np.arange(count)}
    )


@settings(max_examples=80, deadline=None)
@given(
    count=st.integers(0, 40),
    batch_size=st.integers(1, 12),
    world_size=st.integers(1, 5),
    seed=st.integers(0, 99),
    epoch=st.integers(0, 9),
    drop_last=st.booleans(),
)
def test_processes_share_the_same_global_batches(
    count: int, batch_size: int, world_size: int, seed: int, epoch: int, drop_last: bool
) -> None:
    graphs = numbered(count)

    def batches(rank: int, of: int) -> list[list[int]]:
        loader = BatchLoader(graphs, batch_size, shuffle=True, seed=seed, rank=rank, world_size=of, drop_last=drop_last)
        loader.set_epoch(epoch)
        found = [batch.y.tolist() for batch in loader]
        assert len(found) == len(loader)
        return found

    alone = batches(0, 1)
    together = [batches(rank, world_size) for rank in range(world_size)]
    for step, expected in enumerate(alone):
        parts = [rank[step] for rank in together]
        assert [number for part in parts for number in part] == expected
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    seen = sorted(number for batch in alone for number in batch)
    if drop_last:
        assert all(len(batch) == batch_size for batch in alone)
        assert len(seen) == len(set(seen)) == count - count % batch_size
    else:
        assert seen == list(range(count))


def test_the_order_follows_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        loader = BatchLoader(numbered(50), 7, shuffle=True, seed=seed)
        loader.set_epoch(epoch)
        return np.concatenate(list(loader.indices())).tolist()

    assert order(1, 3) == order(1, 3)
    assert len({tuple(order(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9
    assert sorted(order(1, 3)) == list(range(50))


def test_without_shuffling_the_order_is_the_sets() -> None:
    assert [batch.y.tolist() for batch in BatchLoader(numbered(5), 2)] == [[0, 1], [2, 3], [4]]


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="batch_size"):
        BatchLoader(numbered(5), 0)
    with pytest.raises(ValueError, match="rank 2"):
        BatchLoader(numbered(5), 1, rank=2, world_size=2)
