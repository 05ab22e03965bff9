"""Reading that was ended goes on where it was, with the same result."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lspe.data import DataError, read_table
from lspe.data.molecules import resume
from lspe.data.molecules.resume import iter_kept_readings
from lspe.data.molecules.smiles import Readings, read_smiles
from lspe.data.packed.container import open_arrays
from lspe.data.table import packing
from lspe.features import OGBFeatures

SMILES = [("C" * (row % 20 + 1) + ("(" if row % 7 == 0 else "O")) for row in range(2_600)]


class Counting:
    """Work that knows how many SMILES it was given."""

    def __init__(self) -> None:
        self.read = 0

    def __call__(self, smiles: Sequence[str]) -> Readings:
        self.read += len(smiles)
        return read_smiles(smiles, OGBFeatures(), scaffolds=True)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "CHUNK", 500)


def everything(folder: Path, work: Counting) -> list[tuple[int, Readings]]:
    return list(iter_kept_readings(work, SMILES, folder, processes=1))


def same(one: Readings, other: Readings) -> bool:
    arrays = zip(vars(one.arrays).values(), vars(other.arrays).values(), strict=True)
    return (
        all(np.array_equal(first, second) for first, second in arrays)
        and np.array_equal(one.rows, other.rows)
        and (one.reasons, one.scaffolds, one.fragments) == (other.reasons, other.scaffolds, other.fragments)
    )


def test_chunks_that_are_there_are_not_read_again(tmp_path: Path) -> None:
    first = Counting()
    begun = iter_kept_readings(first, SMILES, tmp_path, processes=1)
    next(begun), next(begun), next(begun)
    begun.close()
    parts = sorted(tmp_path.glob("*.lspe"))
    assert len(parts) == 3
    parts[1].write_bytes(parts[1].read_bytes()[:-5])
    second, whole = Counting(), Counting()
    resumed = everything(tmp_path, second)
    assert second.read == len(SMILES) - 1_000
    expected = everything(tmp_path / "other", whole)
    assert [begin for begin, _ in resumed] == [begin for begin, _ in expected] == [0, 500, 1000, 1500, 2000, 2500]
    assert all(same(one, other) for (_, one), (_, other) in zip(resumed, expected, strict=True))
    last = Counting()
    assert all(same(one, other) for (_, one), (_, other) in zip(everything(tmp_path, last), expected, strict=True))
    assert last.read == 0


def test_few_molecules_are_not_kept(tmp_path: Path) -> None:
    list(iter_kept_readings(Counting(), SMILES[:500], tmp_path, processes=1))
    assert not any(tmp_path.iterdir())


def write_table(path: Path) -> Path:
    path.write_text("smiles,y\n" + "".join(f"{one},{row}\n" for row, one in enumerate(SMILES)))
    return path


SCRIPT = """
import sys
from lspe.data import read_table
from lspe.data.molecules import resume
resume.CHUNK = 500
read_table(sys.argv[1], targets="y", on_invalid="skip").to_graphs(processes=1)
"""


@pytest.mark.slow
def test_a_preparation_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write_table(tmp_path / "t.csv")
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "cache"))
    packed = tmp_path / "cache" / "packed"
    seen = 0
    for wanted in (1, 3):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(table)], env={**os.environ})
        while process.poll() is None and len(list(packed.glob("t-*.parts/*.lspe"))) < wanted:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = len(list(packed.glob("t-*.parts/*.lspe")))
        assert kept >= seen
        seen = kept
    assert seen >= 1
    data = read_table(table, targets="y", on_invalid="skip").to_graphs(processes=1)
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "another"))
    expected = read_table(table, targets="y", on_invalid="skip").to_graphs(processes=1)
    assert data.graphs.path is not None
    assert expected.graphs.path is not None
    assert open_arrays(data.graphs.path).digests == open_arrays(expected.graphs.path).digests
    assert not list(packed.glob("*.parts"))
    assert not list(packed.glob(".*.tmp"))


def test_a_table_that_is_refused_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataError, match="row 2, column 'smiles'"):
        read_table(write_table(tmp_path / "t.csv"), targets="y").to_graphs(processes=1)
    assert not list((tmp_path / "cache" / "packed").glob("*.parts"))


def test_too_little_room_is_said_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packing.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1_000_000}))
    with pytest.raises(DataError, match=r"need about 1\.\d MB .* has 1\.0 MB left; make room, or set LSPE_CACHE"):
        read_table(write_table(tmp_path / "t.csv"), targets="y", on_invalid="skip").to_graphs(processes=1)
