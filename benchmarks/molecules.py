"""Molecules to measure with: those of ``zinc250k.csv.gz`` in the data root, else the embedded ones, over and over."""

import csv
import gzip
from itertools import cycle, islice
from pathlib import Path

from lspe.data.benchmarks.download import find
from lspe.data.benchmarks.nci import source_file


def smiles(count: int) -> list[str]:
    path = find("zinc250k.csv.gz")
    if path is None:
        known = [line.split("\t")[0] for line in source_file().read_text().splitlines()]
    else:
        with gzip.open(path, "rt") as file:
            known = [row["smiles"] for row in islice(csv.DictReader(file), count)]
    return list(islice(cycle(known), count))


def write_table(path: Path, count: int) -> None:
    """A table of so many molecules and something to learn."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", "y"])
        writer.writerows((text, number % 97) for number, text in enumerate(smiles(count)))
