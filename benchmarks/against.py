"""This version beside another checkout, in turns: ``python -m benchmarks.against ../other-checkout``.

Each version lives in a process of its own; the two take their steps one after the other, so that a busy moment hits
both. Both get the same batches, and only names that every version has are used. Above 1: this version is quicker.

``--table molecules.csv``: instead, ``lspe train own/gatedgcn-lspe --data molecules.csv`` of both in turns; the
graphs per second are those of the second of two epochs.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from benchmarks.measure import show

ROOT = Path(__file__).parent.parent


class Version:
    """A checkout's training steps and predictions on a batch, timed by its own process."""

    def __init__(self, checkout: Path, preset: str, batch: Path, threads: int) -> None:
        environment = os.environ | {
            "PYTHONPATH": str(checkout.resolve() / "src"),
            "OMP_NUM_THREADS": str(threads),
            "OMP_WAIT_POLICY": "passive",  # whose turn it is not does not spin
        }
        command = [sys.executable, str(ROOT / "benchmarks" / "against_worker.py"), preset, str(batch)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, what: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


def compare(preset: str, graphs: int, other: Path, threads: int, repeats: int) -> dict[str, float]:
    from benchmarks.cases import first_batch
    from lspe.experiment import read_experiment

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "batch.pt"
        _, batch = first_batch(read_experiment(preset), graphs)
        torch.save({key: value for key, value in batch.to_dict().items() if isinstance(value, torch.Tensor)}, path)
        versions = [Version(checkout, preset, path, threads) for checkout in (ROOT, other)]
        times: dict[str, list[list[float]]] = {}
        for what in ("step", "infer"):
            for version in versions:
                version.seconds(what)
            times[what] = [[version.seconds(what) for version in versions] for _ in range(repeats)]
        for version in versions:
            version.end()
    row: dict[str, float] = {}
    for what, pairs in times.items():
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        row |= {f"{what} ms": 1e3 * ours, f"{what} ms, other": 1e3 * theirs, f"{what}: other / this": theirs / ours}
    return row


def graphs_per_second(checkout: Path, table: Path, threads: int) -> float:
    """Of the trainer itself, on somebody's own table."""
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve() / "src"), "OMP_NUM_THREADS": str(threads)}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [
            sys.executable,
            "-m",
            "lspe",
            "train",
            "own/gatedgcn-lspe",
            "--data",
            str(table),
            "--epochs",
            "2",
            "--out",
            str(run),
        ]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        with next(run.rglob("metrics.csv")).open() as lines:
            return float(list(csv.DictReader(lines))[-1]["graphs_per_second"])


def compare_training(table: Path, other: Path, threads: int, repeats: int) -> dict[str, float]:
    rates = [[graphs_per_second(checkout, table, threads) for checkout in (ROOT, other)] for _ in range(repeats)]
    ours, theirs = (statistics.median(column) for column in zip(*rates, strict=True))
    return {"graphs/s": ours, "graphs/s, other": theirs, "this / other": ours / theirs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--presets", nargs="+", default=["zinc/gatedgcn-lspe"])
    parser.add_argument("--graphs", type=int, nargs="+", default=[128, 32])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--table", type=Path, help="compare the training on it")
    options = parser.parse_args()
    if options.table:
        columns = {options.table.name: compare_training(options.table, options.other, options.threads, options.repeats)}
        show(f"training, against {options.other}, {options.threads} threads", columns)
        return
    columns = {
        f"{preset}, {graphs} graphs": compare(preset, graphs, options.other, options.threads, options.repeats)
        for preset in options.presets
        for graphs in options.graphs
    }
    show(f"against {options.other}, {options.threads} threads", columns)


if __name__ == "__main__":
    main()
