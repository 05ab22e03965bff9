"""Every test has a cache of its own, except those that share one of the session to convert a benchmark only once."""

from pathlib import Path

import pytest

from lspe.data import GraphData, load_benchmark


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's derived files go."""
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Benchmarks:
    """Benchmarks from the shared folder, each opened once for all tests of a process."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root = root
        self.cache = cache
        self.opened: dict[str, GraphData] = {}

    def __getitem__(self, name: str) -> GraphData:
        if name not in self.opened:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("LSPE_CACHE", str(self.cache))
                self.opened[name] = load_benchmark(name, self.root)
        return self.opened[name]


@pytest.fixture(scope="session")
def benchmarks(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Benchmarks:
    return Benchmarks(shared_data, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> Benchmarks:
    """The sets that need no file."""
    return Benchmarks(tmp_path_factory.mktemp("empty"), tmp_path_factory.mktemp("cache"))
