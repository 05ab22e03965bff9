import mmap
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from lspe.data import BatchLoader, PackedGraphs
from lspe.data.packed import sets
from lspe.data.packed.container import ArrayWriter, open_arrays
from lspe.data.packed.mapped import let_go, mapped_bytes, pages_of, read_ahead

on_linux = pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="what is resident stands in /proc on Linux")
ROWS = 1 << 17


@pytest.fixture
def column(tmp_path: Path) -> np.ndarray:
    """8 MiB of numbers on disk."""
    with ArrayWriter(tmp_path / "numbers.lspe") as writer:
        writer.append("few", np.arange(5))
        writer.append("x", np.arange(ROWS * 8).reshape(ROWS, 8))
        writer.finish({})
    return open_arrays(tmp_path / "numbers.lspe", verify=False).arrays["x"]


def resident(path: Path) -> int:
    """Bytes of a mapped file in the memory of this process."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    inside, total = False, 0
    for line in lines:
        if "-" in line.split()[0]:
            inside = line.endswith(str(path))
        elif inside and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


@on_linux
def test_what_was_looked_at_is_given_back_and_reads_as_before(column: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "numbers.lspe"
    total = column.sum()
    assert resident(path) >= column.nbytes
    let_go([column, column[3:]])
    assert resident(path) == 0
    assert column.sum() == total == ROWS * 8 * (ROWS * 8 - 1) // 2


@on_linux
def test_rows_that_were_asked_for_are_in_memory(column: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "numbers.lspe"
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    read_ahead(column, np.array([10, 900, 5]), np.array([400, 900, 6]))
    assert column[10:400].sum() == np.arange(80, 3200).sum()
    read_ahead(column, np.array([0]), np.array([ROWS]))
    assert np.array_equal(column[-1], np.arange(ROWS * 8 - 8, ROWS * 8))


def test_advice_begins_with_pages_and_ends_with_rows() -> None:
    page = mmap.PAGESIZE
    ranges = np.array([[0, 64], [page - 1, page + 1], [3 * page, 3 * page], [5 * page + 7, 9 * page]]).T
    assert pages_of(*ranges) == [(0, 64), (0, page + 1), (5 * page, 4 * page)]


def test_memory_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    own = np.arange(10)
    writable = np.memmap(tmp_path / "changed", dtype=np.int64, mode="w+", shape=(10,))
    writable[:] = 7
    let_go([own, writable])
    read_ahead(own, np.array([0]), np.array([10]))
    assert own.sum() == 45
    assert writable.tolist() == [7] * 10
    assert mapped_bytes([own, writable]) == 0


@pytest.fixture
def graphs(tmp_path: Path) -> PackedGraphs:
    """Of two pages and more for each column."""
    count = 2500
    generator = np.random.default_rng(0)
    num_nodes = generator.integers(1, 5, count)
    return PackedGraphs.from_arrays(
        num_nodes,
        num_nodes,
        np.stack([np.zeros(num_nodes.sum()), np.zeros(num_nodes.sum())]).astype(np.int64),
        node={"x": generator.integers(0, 9, num_nodes.sum())},
        graph={"y": np.arange(count)},
    ).save(tmp_path / "set.lspe")


@on_linux
def test_a_large_set_does_not_stay_in_memory(
    graphs: PackedGraphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in BatchLoader(graphs, 125):
        pass
    assert resident(tmp_path / "set.lspe") > 0
    monkeypatch.setattr(sets, "LARGE", 1000)
    for _ in BatchLoader(graphs, 125):  # given back after every other batch, and so after the last
        pass
    assert resident(tmp_path / "set.lspe") == 0


def test_a_set_that_outgrows_memory_gives_the_same_batches(
    graphs: PackedGraphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = graphs.select(np.arange(len(graphs))[::2])
    expected = [batch.to_dict() for batch in BatchLoader(part, 30, shuffle=True)]
    assert not part.outgrows_memory

    monkeypatch.setattr(sets, "memory_of_machine", lambda: 1000)
    assert part.outgrows_memory
    asked = []
    read = PackedGraphs.read_ahead
    monkeypatch.setattr(PackedGraphs, "read_ahead", lambda self, some: (asked.append(len(some)), read(self, some)))
    found = [batch.to_dict() for batch in BatchLoader(part, 30, shuffle=True)]
    assert sum(asked) == len(part)
    for ours, theirs in zip(found, expected, strict=True):
        for name, value in theirs.items():
            assert torch.equal(ours[name], value) if isinstance(value, torch.Tensor) else ours[name] == value
