"""What a molecule costs at each stage, at growing numbers of them: CPU-seconds, memory and room on disk.

``python -m benchmarks.scale TABLE [--json] [--molecules 10000 100000] [--processes 2] [--stages read pack ...]``. TABLE
has a column of SMILES, such as MOSES' train.csv, and as many rows as are asked for; its targets are made up. Each stage
at each size has a process of its own, with a cache of its own.

- read: the table, with its text on disk. pack: molecules to graphs. rwpe: 16 steps of random walks for all of them.
- train: an epoch of own/gatedgcn-lspe. predict: all of them, by the network that was trained.
- molecules_per_s: by the clock; cpu_us: CPU-microseconds of all processes per molecule; peak_mb: of the process that
  works, without those that read molecules; mapped_mb: of files, resident at the end (Linux), which the system takes
  back when it needs memory; disk_bytes: in the cache, per molecule.
"""

import argparse
import csv
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import peak_mb, show

STAGES = ("read", "pack", "rwpe", "train", "predict")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--molecules", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--processes", type=int, default=2, help="that read molecules")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES, help="predict needs train before it")
    parser.add_argument("--worker", metavar="STAGE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measured(arguments.worker, arguments.table, arguments.processes)))
        return
    result: dict[str, dict[str, float]] = {}
    for count in arguments.molecules:
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "molecules.csv")
            write_rows(arguments.table, table, count)
            for stage in arguments.stages:
                row = in_a_process(stage, table, arguments.processes)
                result[f"{stage} {count:,}"] = per_molecule(row, count)
                print(f"{stage} {count:,}", result[f"{stage} {count:,}"], file=sys.stderr)  # it may be a long way
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    show(f"{arguments.table.name}, {arguments.processes} processes", result)


def write_rows(source: Path, target: Path, count: int) -> None:
    """The first molecules with a number that can be learned: their carbons."""
    with source.open(newline="") as file, target.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["smiles", "y"])
        written = 0
        for row in itertools.islice(csv.DictReader(file), count):
            smiles = next(value for name, value in row.items() if name.lower() == "smiles")
            writer.writerow([smiles, smiles.lower().count("c")])
            written += 1
    if written < count:
        raise SystemExit(f"{source} has {written:,} rows, fewer than {count:,}")


def in_a_process(stage: str, table: Path, processes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scale", str(table), "--worker", stage, "--processes", str(processes)]
    environment = os.environ | {"LSPE_CACHE": str(table.parent / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def per_molecule(row: dict[str, float], count: int) -> dict[str, float]:
    return {
        "molecules_per_s": count / row["seconds"],
        "cpu_us": 1e6 * row["cpu_seconds"] / count,
        "peak_mb": row["peak_mb"],
        "mapped_mb": row["mapped_mb"],
        "disk_bytes": row["disk_bytes"] / count,
    }


def measured(stage: str, table: Path, processes: int) -> dict[str, Any]:
    """A stage, with those before it taken from the cache where they are there."""
    work = prepare(stage, table, processes)
    before, clock, disk = cpu_seconds(), time.perf_counter(), size_of(table.parent)
    work()
    return {
        "seconds": time.perf_counter() - clock,
        "cpu_seconds": cpu_seconds() - before,
        "peak_mb": peak_mb(),
        "mapped_mb": mapped_mb(),
        "disk_bytes": size_of(table.parent) - disk,
    }


def prepare(stage: str, table: Path, processes: int) -> Callable[[], object]:
    from lspe.data import read_table
    from lspe.predict import load
    from lspe.workflow import train

    run = table.parent / "run"
    if stage == "read":
        return lambda: read_table(table, targets="y")
    if stage == "pack":
        read = read_table(table, targets="y")
        return lambda: read.to_graphs(processes=processes)
    if stage == "rwpe":
        graphs = read_table(table, targets="y").to_graphs(processes=processes)
        return lambda: graphs.with_encoding("rwpe", 16)
    if stage == "train":
        options = {"preset": "own/gatedgcn-lspe", "epochs": 1, "threads": 1, "workers": processes, "members": 1}
        return lambda: train(str(table), targets=["y"], out=run, **options)
    model = load(run)
    return lambda: model.predict_table(table, table.parent / "predicted.parquet", processes=processes)


def cpu_seconds() -> float:
    """Of this process and of those it has waited for."""
    times = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in times)


def mapped_mb() -> float:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith("RssFile")), float("nan"))


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
