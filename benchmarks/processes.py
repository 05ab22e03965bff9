"""Training in one process and in two that share each batch, by Lightning's DDP, one thread each, in turns.

``python -m benchmarks.processes [PRESET] [--json] [--processes 2] [--batch 256] [--epochs 3] [--repeats 1]``.
By default zinc/gatedgcn-lspe, which needs ZINC in the data root ($LSPE_DATA).

- graphs_per_s: of all processes together, the median over the epochs but the first.
- speed-up: over one process; efficiency: by the number of processes.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="?", default="zinc/gatedgcn-lspe")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256, help="of all processes together")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=1, help="in turns, the median counts")
    parser.add_argument("--set", action="append", default=[], help="as of lspe train")
    arguments = parser.parse_args()
    counts = (1, arguments.processes)
    speeds: dict[int, list[float]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.repeats):
            for count in counts:
                speeds[count].append(graphs_per_second(Path(folder, f"{count}-{turn}"), count, arguments))
    speed = {count: statistics.median(some) for count, some in speeds.items()}
    result = {
        f"{count} process{'es' * (count > 1)}": {
            "graphs_per_s": speed[count],
            "speed-up": speed[count] / speed[1],
            "efficiency": speed[count] / speed[1] / count,
        }
        for count in counts
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    show(f"{arguments.preset}, batches of {arguments.batch}, one thread per process", result)


def graphs_per_second(folder: Path, processes: int, arguments: argparse.Namespace) -> float:
    settings = [f"training.batch_size={arguments.batch}", *arguments.set]
    options = f"train {arguments.preset} --epochs {arguments.epochs} --device cpu --devices {processes} --threads 1"
    command = [sys.executable, "-m", "lspe", *options.split(), "--out", str(folder)]
    command += [word for setting in settings for word in ("--set", setting)]
    subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True, capture_output=True)
    epochs = list(csv.DictReader((folder / "metrics.csv").read_text().splitlines()))
    return statistics.median(float(epoch["graphs_per_second"]) for epoch in epochs[1:] or epochs)


if __name__ == "__main__":
    main()
