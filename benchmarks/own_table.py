"""From a table to a trained network: ``lspe train --data`` as one types it, with fused operators and plain, in turns.

``python -m benchmarks.own_table [--json] [--molecules 5000] [--epochs 3] [--repeats 1]``. The molecules are those of
``zinc250k.csv.gz`` in the data root ($LSPE_DATA) where it is there, else the embedded ones. Every run reads a table of
its own.

- seconds: of the whole command.
- before and after: what of it is not epochs: starting, reading, encoding, the last evaluation.
- graphs_per_s: of the training part, the median over the epochs.
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

from benchmarks.measure import seconds, show
from benchmarks.molecules import write_table
from lspe import ops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--molecules", type=int, default=5_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=1, help="in turns, the median counts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LSPE_CACHE"] = folder
        ops.status()  # compiles the operators, which is done once and not part of a training
        rounds = [
            {kind: train(Path(folder, f"{kind}{turn}"), kind, arguments) for kind in ("fused", "plain")}
            for turn in range(arguments.repeats)
        ]
    result = {kind: medians([one[kind] for one in rounds]) for kind in ("fused", "plain")}
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    show(f"lspe train --data of {arguments.molecules:,} molecules, {arguments.epochs} epochs", result)


def train(folder: Path, kind: str, arguments: argparse.Namespace) -> dict[str, float]:
    folder.mkdir()
    write_table(folder / "molecules.csv", arguments.molecules)
    options = f"train --data {folder / 'molecules.csv'} --target y --epochs {arguments.epochs} --out {folder / 'run'}"
    command = [sys.executable, "-m", "lspe", *options.split()]
    environment = os.environ | {"LSPE_OPS": kind}
    total = seconds(lambda: subprocess.run(command, env=environment, check=True, capture_output=True))
    networks = sorted((folder / "run").rglob("metrics.csv"))
    epochs = [epoch for path in networks for epoch in csv.DictReader(path.read_text().splitlines())]
    training = sum(float(epoch["seconds"]) for epoch in epochs)
    return {
        "seconds": total,
        "before and after": total - training,
        "graphs_per_s": statistics.median(float(epoch["graphs_per_second"]) for epoch in epochs),
    }


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


if __name__ == "__main__":
    main()
