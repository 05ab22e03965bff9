"""A table predicted on a Ray cluster of this machine, one of whose processes is killed, beside the same without Ray.

``python -m benchmarks.cluster [--json] [--molecules 200000] [--workers 2] [--rows-per-part 20000]``, where
the extra ray is installed (make test-ray has it in .venv-ray). The network has random weights.

- local, ray: molecules per second, of the whole call with starting processes.
- killed: how many processes were; same: whether every row, in its order, has the same numbers.
"""

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path

import pandas as pd
import psutil
import torch

from benchmarks.measure import seconds, show
from benchmarks.molecules import write_table
from lspe.cluster import predict_on_ray
from lspe.predict import Predictor
from tests.members import member


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--molecules", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows-per-part", type=int, default=20_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = Predictor([member()])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "table.csv", arguments.molecules)
        pd.read_csv(folder / "table.csv").to_parquet(folder / "table.parquet")
        table, alone, parts = folder / "table.parquet", folder / "alone.parquet", folder / "parts"
        local = seconds(lambda: model.predict_table(table, alone, processes=arguments.workers))
        killer = Killer(folder)
        killer.start()
        options = {"workers": arguments.workers, "rows_per_part": arguments.rows_per_part}
        with_ray = seconds(lambda: predict_on_ray(model, table, parts, **options))
        killer.stop.set()
        same = pd.read_parquet(alone).equals(pd.read_parquet(parts))
    result = {
        "local": arguments.molecules / local,
        "ray": arguments.molecules / with_ray,
        "killed": killer.killed,
        "same": same,
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    show(f"{arguments.molecules:,} molecules, {arguments.workers} processes", {"": result})


class Killer(threading.Thread):
    """Kills one process of the cluster when the first part is there: in the middle of the second or third."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.killed, self.stop = folder, 0, threading.Event()

    def run(self) -> None:
        while not self.stop.is_set() and not self.killed:
            time.sleep(0.2)
            if any(self.folder.glob(".parts.*.tmp/parts/part-*.parquet")):
                workers = [one for one in psutil.Process().children(recursive=True) if "ray::MapWorker" in title(one)]
                for worker in workers[:1]:
                    worker.kill()
                    self.killed += 1


def title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


if __name__ == "__main__":
    main()
