"""What tests of all parts share."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from lspe.data import GraphData
from lspe.experiment import Experiment
from lspe.forest import growing
from tests import small


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the benchmarks' files."""
    folder = os.environ.get("LSPE_DATA")
    if not folder:
        pytest.skip("LSPE_DATA does not name a folder with the benchmarks' files")
    return Path(folder)


@pytest.fixture
def ordinary_ctrl_c() -> Iterator[None]:
    """A test process that was started in the background inherits that Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Everything derived goes into a cache of the session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LSPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def few_trees() -> Iterator[None]:
    """Forests grow in no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "_TREES", {"numbers": 20, "classes": 20})
        patch.setattr(growing, "_FEWEST_TREES", 10)
        yield


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of forty molecules for each kind of task."""
    folder = tmp_path_factory.mktemp("tables")
    return {task: small.write_table(folder / f"{task}.csv", task) for task in ("regression", "binary", "multiclass")}


@pytest.fixture(scope="session")
def prepared(tables: dict[str, Path], session_cache: None) -> Callable[..., tuple[Experiment, GraphData]]:
    """A tiny experiment on one of the tables, and its data."""

    def make(
        task: str = "regression", *settings: str, preset: str = "own/gatedgcn-lspe"
    ) -> tuple[Experiment, GraphData]:
        one = small.experiment(tables[task], *settings, preset=preset)
        return one, small.data_of(one)

    return make
