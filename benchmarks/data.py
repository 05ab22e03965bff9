"""From files to batches: how long it takes, beside PyG where PyG does the same.

``python -m benchmarks.data [--json] [--quick] [--molecules N]``. Needs ZINC in the data root ($LSPE_DATA) or the
network; the molecules are those of ``zinc250k.csv.gz`` there, else the embedded ones over and over.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Batch

from benchmarks.measure import interleaved, seconds
from benchmarks.molecules import write_table
from lspe.data import GraphData, load_benchmark, read_table

BATCH = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="fewer repeats and molecules")
    parser.add_argument("--molecules", type=int, help="rows of the table (100,000; quick: 10,000)")
    arguments = parser.parse_args()
    molecules = arguments.molecules or (10_000 if arguments.quick else 100_000)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LSPE_CACHE"] = folder
        results = {
            "batching": batching(20 if arguments.quick else 100),
            "start": start(),
            "molecules": table_to_packed(Path(folder), molecules),
        }
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    console = Console()
    for title, result in results.items():
        table = Table(title=title, show_header=False)
        for name, value in result.items():
            table.add_row(name, f"{value:,.4g}" if isinstance(value, float) else f"{value:,}")
        console.print(table)


def batching(repeats: int) -> dict[str, Any]:
    """A batch of 128 ZINC graphs by slices, and the same by PyG's collation of ready ``Data``."""
    result: dict[str, Any] = {"graphs": BATCH}
    order = np.random.default_rng(0).permutation(10_000)[:BATCH]
    for name, data in (("plain", load_benchmark("zinc")), ("rwpe20", load_benchmark("zinc", encoding="rwpe", k=20))):
        ready = [data.graphs[i] for i in order.tolist()]
        ours, theirs = interleaved([lambda: data.graphs.batch(order), lambda: Batch.from_data_list(ready)], repeats)  # noqa: B023
        result |= {f"{name}_ms": ours * 1e3, f"{name}_pyg_ms": theirs * 1e3, f"{name}_ratio": theirs / ours}
    return result


def start() -> dict[str, Any]:
    """ZINC-12k with 20-step encodings: the first start converts and computes, later ones map and check."""
    os.environ["LSPE_CACHE"] = tempfile.mkdtemp(dir=os.environ["LSPE_CACHE"])
    first = seconds(lambda: load_benchmark("zinc", encoding="rwpe", k=20))
    again = statistics.median(seconds(lambda: load_benchmark("zinc", encoding="rwpe", k=20)) for _ in range(5))
    return {"first_s": first, "again_s": again}


def table_to_packed(folder: Path, molecules: int) -> dict[str, Any]:
    """A CSV of molecules to a packed set with 16-step encodings, in as many processes as there are cores."""
    path = folder / "molecules.csv"
    write_table(path, molecules)

    def convert() -> GraphData:
        return read_table(path, targets="y", on_invalid="skip").to_graphs()

    to_graphs = seconds(convert)
    encoding = seconds(lambda: convert().with_encoding("rwpe", 16))
    total = to_graphs + encoding
    return {
        "molecules": molecules,
        "to_graphs_s": to_graphs,
        "encoding_s": encoding,
        "molecules_per_s": molecules / total,
        "cores": len(os.sched_getaffinity(0)),
    }


if __name__ == "__main__":
    main()
