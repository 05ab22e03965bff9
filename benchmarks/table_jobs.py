"""Public tables under one division each, for :mod:`benchmarks.tables`, and where what was found of them is kept."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lspe.data import GraphData, read_table

TOX21 = "tox21.csv.gz"
TABLES: dict[str, tuple[str, str]] = {
    "esol": ("molnet/esol.csv.gz", "y"),
    "freesolv": ("molnet/freesolv.csv.gz", "y"),
    "bbbp": ("molnet/bbbp.csv.gz", "p_np"),
    "clintox": ("molnet/clintox.csv.gz", "CT_TOX"),
    "tox21-NR-AhR": (TOX21, "NR-AhR"),
    "tox21-SR-ARE": (TOX21, "SR-ARE"),
    "tox21-SR-MMP": (TOX21, "SR-MMP"),
    "tox21-NR-PPAR-gamma": (TOX21, "NR-PPAR-gamma"),
}
"""The last one, whose labels are rare, is kept apart: nothing of the default was chosen by it."""
SPLITS = ("0", "1", "2", "3", "4", "scaffold")


@dataclass(frozen=True)
class Job:
    """A table under one division, whole or with so many molecules that are not tested."""

    table: str
    split: str
    size: int | None = None

    @property
    def path(self) -> Path:
        if self.size is None:
            return Path(os.environ["LSPE_DATA"]) / TABLES[self.table][0]
        path = Path(tempfile.gettempdir(), "lspe-tables", f"{self.table}-{self.split}-{self.size}.csv")
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            self._drawn().to_csv(path, index=False)
        return path

    @property
    def is_large_enough(self) -> bool:
        """Whether there are as many molecules to learn from as it asks for."""
        return self.size is None or len(_untested(Job(self.table, self.split).data())) >= self.size

    def _drawn(self) -> pd.DataFrame:
        data = Job(self.table, self.split).data()
        drawn = np.random.default_rng(0).permutation(_untested(data))[: self.size]
        parts = {"val": drawn[: len(drawn) // 9], "train": drawn[len(drawn) // 9 :], "test": data.splits["test"]}
        labels = data.graphs.graph["y"][:, 0]
        return pd.concat(
            pd.DataFrame({"smiles": np.array(data.smiles)[rows], self.target: labels[rows], "split": name})
            for name, rows in parts.items()
        )

    @property
    def target(self) -> str:
        return TABLES[self.table][1]

    @property
    def division(self) -> dict[str, Any]:
        if self.size is not None:
            return {"split": "column"}
        return {"split": "scaffold"} if self.split == "scaffold" else {"split": "random", "seed": int(self.split)}

    def data(self) -> GraphData:
        """With both kinds of descriptors."""
        table = read_table(self.path, targets=self.target, on_invalid="skip")
        return table.to_graphs(**self.division, descriptors=("rdkit", "morgan"))


def _untested(data: GraphData) -> NDArray[np.int64]:
    return np.concatenate([data.splits["train"], data.splits["val"]])


def metric_of(table: str) -> str:
    return "rmse" if table in ("esol", "freesolv") else "roc_auc"


def place_of(out: Path, job: Job, method: str) -> Path:
    size = "" if job.size is None else f"--{job.size}"
    return out / f"{job.table}--{job.split}{size}--{method.replace(', ', '-').replace(' ', '-')}.json"
