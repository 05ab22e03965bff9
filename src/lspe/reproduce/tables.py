"""Which presets make up which table of the paper, and the scores that it quotes from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from lspe.config import ConfigError, unknown_name
from lspe.experiment import list_presets
from lspe.experiment.overriding import override
from lspe.experiment.reading import read_experiment
from lspe.experiment.value import CONFIG, Experiment

K_STUDY = (4, 8, 12, 16, 20, 24)


@dataclass(frozen=True)
class Row:
    """One row to train: a preset, and what is changed in it."""

    preset: str
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The preset's name with its changes (``zinc/gatedgcn-lspe-k4``), which is also the folder of its runs."""
        return "-".join([self.preset, *(setting.rpartition(".")[2].replace("=", "") for setting in self.settings)])

    @property
    def experiment(self) -> Experiment:
        """What is trained."""
        return override(read_experiment(self.preset), self.settings)


@dataclass(frozen=True)
class Baseline:
    """A score of another network that the paper quotes."""

    dataset: str
    model: str
    test: float
    test_sd: float


def _rows(dataset: str, names: str) -> tuple[Row, ...]:
    return tuple(Row(f"{dataset}/{name}") for name in names.split())


_BY_DATA_SET: dict[str, tuple[Row, ...]] = {
    "zinc": _rows(
        "zinc",
        "gatedgcn gatedgcn-lappe gatedgcn-lspe gatedgcn-lspe-posloss pna pna-lspe san san-lspe graphit graphit-lspe "
        "ablation-rwpe-input ablation-rwpe-final ablation-lappe-lspe-h ablation-lappe-lspe-hp ablation-rwpe-lspe-h",
    ),
    "moltox21": _rows(
        "moltox21",
        "gatedgcn gatedgcn-lappe gatedgcn-lspe pna pna-lspe pna-lspe-posloss san san-lspe graphit graphit-lspe",
    ),
    "molpcba": _rows("molpcba", "gatedgcn gatedgcn-lappe gatedgcn-lspe pna pna-lspe"),
    "imdb-binary": _rows("imdb-binary", "gatedgcn gatedgcn-lspe"),
    "imdb-multi": _rows("imdb-multi", "gatedgcn gatedgcn-lspe"),
    "cifar10": _rows("cifar10", "gatedgcn gatedgcn-lspe"),
    "csl": _rows("csl", "gatedgcn gatedgcn-lspe"),
    "nci": _rows("nci", "gatedgcn gatedgcn-lspe"),
}


def _study_of_k(preset: str) -> tuple[Row, ...]:
    return tuple(Row(preset, (f"model.k={k}",)) for k in K_STUDY)


TABLES: dict[str, tuple[Row, ...]] = {
    **_BY_DATA_SET,
    "table1": (*_BY_DATA_SET["zinc"][:10], *_BY_DATA_SET["moltox21"], *_BY_DATA_SET["molpcba"]),
    "table2": (
        Row("zinc/gatedgcn-lspe-posloss"),
        Row("moltox21/gatedgcn-lspe"),
        Row("molpcba/pna-lspe"),
    ),
    "ablation": _rows(
        "zinc",
        "gatedgcn gatedgcn-lappe ablation-rwpe-input ablation-rwpe-final ablation-lappe-lspe-h "
        "ablation-lappe-lspe-hp ablation-rwpe-lspe-h gatedgcn-lspe",
    ),
    "nonmolecular": (*_BY_DATA_SET["imdb-binary"], *_BY_DATA_SET["imdb-multi"], *_BY_DATA_SET["cifar10"]),
    "k-study": (*_study_of_k("zinc/gatedgcn-lspe"), *_study_of_k("moltox21/pna-lspe")),
    "zinc-k": _study_of_k("zinc/gatedgcn-lspe"),
}
"""The rows of each table, in the paper's order: all that it has of a data set, and its tables as they are.

csl is its example of graphs that 1-WL cannot tell apart, nci the same comparison on data that need no download;
zinc-k is the part of its study of k that is on ZINC.
"""

ONE_SEED = frozenset({"csl", "nci"})
"""Tables whose point is made with one seed; all others take the paper's four unless told otherwise."""

BASELINES: tuple[Baseline, ...] = (
    Baseline("zinc", "GCN", 0.367, 0.011),
    Baseline("zinc", "GAT", 0.384, 0.007),
    Baseline("zinc", "GatedGCN-LapPE", 0.202, 0.006),
    Baseline("zinc", "GT", 0.226, 0.014),
    Baseline("zinc", "SAN", 0.139, 0.006),
    Baseline("zinc", "Graphormer", 0.122, 0.006),
    Baseline("moltox21", "GCN", 0.7529, 0.0069),
    Baseline("moltox21", "GCN-VN", 0.7746, 0.0086),
    Baseline("moltox21", "GIN", 0.7491, 0.0051),
    Baseline("moltox21", "GIN-VN", 0.7757, 0.0062),
    Baseline("moltox21", "GatedGCN-LapPE", 0.7743, 0.0073),
    Baseline("molpcba", "GIN", 0.2266, 0.0028),
    Baseline("molpcba", "GIN-VN", 0.2703, 0.0023),
    Baseline("molpcba", "DeeperGCN-VN", 0.2781, 0.0038),
    Baseline("molpcba", "PNA", 0.2838, 0.0035),
    Baseline("molpcba", "DGN", 0.2885, 0.0030),
    Baseline("molpcba", "PHC-GNN", 0.2947, 0.0026),
)
"""What table 2 of the paper quotes."""


def rows_of_table(name: str) -> tuple[Row, ...]:
    """The rows of a table, or the one of a preset."""
    if name in TABLES:
        return TABLES[name]
    if name in list_presets():
        return (Row(name),)
    raise ConfigError(unknown_name("table or preset", name, [*TABLES, *list_presets()]))


def choose_rows(tables: Mapping[str, Sequence[Row]], only: Sequence[str]) -> dict[str, tuple[Row, ...]]:
    """Of each table the rows whose names are among ``only`` (``zinc/san*``); all of them where that is empty."""
    rows = {row.name for table in tables.values() for row in table}
    for pattern in only:
        if not any(fnmatchcase(name, pattern) for name in rows):
            raise ConfigError(unknown_name("row", pattern, sorted(rows)))
    return {
        name: tuple(row for row in table if not only or any(fnmatchcase(row.name, pattern) for pattern in only))
        for name, table in tables.items()
    }


def rows_found_in(folder: Path) -> dict[str, tuple[Row, ...]]:
    """The rows that have runs below ``folder``, by data set, in the order of the tables."""
    presets = (Row(preset) for preset in list_presets())
    rows = dict.fromkeys([*(row for table in TABLES.values() for row in table), *presets])
    found: dict[str, tuple[Row, ...]] = {}
    for row in rows:
        if any((folder / row.name).glob(f"seed*/{CONFIG}")):
            dataset = row.name.partition("/")[0]
            found[dataset] = (*found.get(dataset, ()), row)
    return found
