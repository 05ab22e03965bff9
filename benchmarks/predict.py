"""A long table through the default network for own data: molecules a second, and memory over the loaded network.

``python -m benchmarks.predict [--json] [--molecules 100000] [--workers N]``. The molecules are those of
``zinc250k.csv.gz`` in the data root ($LSPE_DATA) where it is there, else the embedded ones over and over. The weights
are random: they do not matter for time.
"""

import argparse
import json
import os
import resource
import tempfile
import threading
import time
from pathlib import Path

import torch

from benchmarks.molecules import write_table
from lspe.experiment import build_network, read_experiment
from lspe.features import OGBFeatures
from lspe.predict import Predictor
from lspe.predict.member import Member
from lspe.training import Interface


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--molecules", type=int, default=100_000)
    parser.add_argument("--workers", type=int, help="processes that read molecules")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), arguments.molecules, arguments.workers)
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        print(f"{name:>28}  {value:,.4g}" if isinstance(value, float) else f"{name:>28}  {value:,}")


def measure(folder: Path, count: int, workers: int | None) -> dict[str, float | int]:
    write_table(folder / "molecules.csv", count)
    model = default_network()
    model.predict("CCO")
    loaded = memory_of_family()
    with PeakMemory() as peak:
        started, cpu = time.perf_counter(), cpu_seconds()
        summary = model.predict_table(folder / "molecules.csv", folder / "predicted.csv", processes=workers)
        seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    return {
        "molecules": summary.rows,
        "not read": summary.without,
        "cores": len(os.sched_getaffinity(0)),
        "load of the machine": os.getloadavg()[0],
        "seconds": seconds,
        "molecules a second": count / seconds,
        "CPU ms a molecule": 1000 * cpu / count,
        "MiB of the loaded network": loaded / 2**20,
        "MiB on top, all processes": (peak.bytes - loaded) / 2**20,
    }


def default_network() -> Predictor:
    experiment = read_experiment("own/gatedgcn-lspe")
    torch.manual_seed(0)
    interface = Interface(features=OGBFeatures(), task_names=("y",), class_names=(), scaling=None)
    return Predictor([Member("default", experiment, interface, build_network(experiment).eval())])


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def memory_of_family() -> int:
    """Memory of this process and all below it that no other process has too (Linux: Pss), in bytes."""
    family, total = {os.getpid()}, 0
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    for _ in range(4):
        family |= {child for child, parent in parents.items() if parent in family}
    for member in family:
        try:
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


class PeakMemory:
    """The most memory that was in use, looked at every few seconds: a look takes 30 ms of the time measured."""

    def __enter__(self) -> "PeakMemory":
        self.bytes = 0
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(3.0):
            self.bytes = max(self.bytes, memory_of_family())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()


if __name__ == "__main__":
    main()
