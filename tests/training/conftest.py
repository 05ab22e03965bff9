"""Tables of forty molecules and the benchmarks' folder; everything derived goes into a cache of the session."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from lspe.data import GraphData
from lspe.experiment import Experiment
from tests.training import small


@pytest.fixture(autouse=True)
def ordinary_ctrl_c() -> Iterator[None]:
    """A test process that was started in the background inherits that Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LSPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table for each kind of task."""
    folder = tmp_path_factory.mktemp("tables")
    return {task: small.write_table(folder / f"{task}.csv", task) for task in ("regression", "binary", "multiclass")}


@pytest.fixture(scope="session")
def prepared(tables: dict[str, Path]) -> Callable[..., tuple[Experiment, GraphData]]:
    """A tiny experiment on one of the tables, and its data."""

    def make(
        task: str = "regression", *settings: str, preset: str = "own/gatedgcn-lspe"
    ) -> tuple[Experiment, GraphData]:
        one = small.experiment(tables[task], *settings, preset=preset)
        return one, small.data_of(one)

    return make
