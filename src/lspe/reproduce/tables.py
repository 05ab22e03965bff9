"""Which presets make up which table of the paper, and the scores that it quotes from others."""

from __future__ import annotations

from dataclasses import dataclass

from lspe.config import ConfigError, unknown_name
from lspe.experiment import list_presets

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


@dataclass(frozen=True)
class Baseline:
    """A score of another network that the paper quotes."""

    dataset: str
    model: str
    test: float
    test_sd: float


def _rows(dataset: str, names: str) -> tuple[Row, ...]:
    return tuple(Row(f"{dataset}/{name}") for name in names.split())


TABLES: dict[str, tuple[Row, ...]] = {
    "table1": (
        *_rows("zinc", "gatedgcn gatedgcn-lappe gatedgcn-lspe gatedgcn-lspe-posloss"),
        *_rows("zinc", "pna pna-lspe san san-lspe graphit graphit-lspe"),
        *_rows("moltox21", "gatedgcn gatedgcn-lappe gatedgcn-lspe pna pna-lspe pna-lspe-posloss"),
        *_rows("moltox21", "san san-lspe graphit graphit-lspe"),
        *_rows("molpcba", "gatedgcn gatedgcn-lappe gatedgcn-lspe pna pna-lspe"),
    ),
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
    "nonmolecular": (
        *_rows("imdb-binary", "gatedgcn gatedgcn-lspe"),
        *_rows("imdb-multi", "gatedgcn gatedgcn-lspe"),
        *_rows("cifar10", "gatedgcn gatedgcn-lspe"),
    ),
    "k-study": tuple(
        Row(preset, (f"model.k={k}",)) for preset in ("zinc/gatedgcn-lspe", "moltox21/pna-lspe") for k in K_STUDY
    ),
    "csl": _rows("csl", "gatedgcn gatedgcn-lspe"),
    "nci": _rows("nci", "gatedgcn gatedgcn-lspe"),
}
"""The rows of each table, in the paper's order.

csl is its example of graphs that 1-WL cannot tell apart, nci the same comparison on data that need no download.
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
