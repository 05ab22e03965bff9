"""Forty molecules and networks small enough to train in a second."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lspe.data import GraphData
from lspe.experiment import Experiment, TableSource, override, read_experiment, with_own_data
from lspe.experiment.data import load_data

SMILES = [
    chain + tail
    for tail in ("", "O", "N", "C=O", "c1ccccc1", "C(=O)O", "C1CCCCC1", "Cl")
    for chain in ("C", "CC", "CCC", "CC(C)C", "CCOC")
]
TINY = ("model.layers=2", "model.hidden_dim=16", "model.k=4", "training.batch_size=8")


def write_table(path: Path, task: str = "regression") -> Path:
    """A table with a target that a network can learn: rings and size as a sum or as labels, or classes of molecules."""
    size = np.array([sum(letter in "CNOcl" for letter in smiles) for smiles in SMILES], dtype=float)
    ring = np.array([float("1" in smiles) for smiles in SMILES])
    lines = {
        "regression": [f"{smiles},{100 + 50 * r + n}" for smiles, r, n in zip(SMILES, ring, size, strict=True)],
        "binary": [
            f"{smiles},{int(r)},{int(n > 6) if number % 3 else ''}"
            for number, (smiles, r, n) in enumerate(zip(SMILES, ring, size, strict=True))
        ],
        "multiclass": [
            f"{smiles},{'ring' if r else 'hydrocarbon' if set(smiles) <= set('C()') else 'other'}"
            for smiles, r in zip(SMILES, ring, strict=True)
        ],
    }[task]
    header = "smiles,ring,large" if task == "binary" else "smiles,y"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def experiment(table: Path, *settings: str, preset: str = "own/gatedgcn-lspe", **source: Any) -> Experiment:
    """A tiny network on a table."""
    chosen = with_own_data(read_experiment(preset), TableSource(path=str(table), **source))
    return override(chosen, [*TINY, *settings])


def data_of(one: Experiment) -> GraphData:
    return load_data(one, processes=1)


def without_times(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of metrics.csv without the columns that tell the time."""
    return [
        {key: value for key, value in row.items() if key != "seconds" and not key.endswith("_per_second")}
        for row in history
    ]
