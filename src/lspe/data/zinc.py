"""ZINC: 12,000 molecules (``zinc``) or all 249,456 (``zinc-full``) with penalised, normalised logP."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lspe.data.download import find
from lspe.data.errors import DataError
from lspe.data.features import Features
from lspe.data.graphdata import Description, GraphData
from lspe.data.locations import Root, data_root, packed_path
from lspe.data.packed import PackedGraphs, both_directions
from lspe.data.splits import in_order

VOCABULARY = (
    "C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +", "N -",
    "S -", "I", "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +",
    "S H1 +", "C H1 -", "P H1 +",
)  # fmt: skip
FEATURES = Features("categorical", atom_types=28, bond_types=4, atom_vocabulary=VOCABULARY)
ARRAYS = "zinc12k_graphs.npz"


def _about(name: str, source: str) -> Description:
    return Description(
        name=name,
        task="regression",
        num_outputs=1,
        task_names=("penalised logP",),
        features=FEATURES,
        source=source,
    )


def from_arrays(source: Path, path: Path) -> None:
    """Convert the benchmark's graphs as arrays, each bond listed once."""
    with np.load(source) as file:
        num_edges, edge_index, (bond_type,) = both_directions(
            file["num_edges"], [file["edge_src"], file["edge_dst"]], file["bond_type"]
        )
        graphs = PackedGraphs.from_arrays(
            file["num_nodes"],
            num_edges,
            edge_index,
            node={"x": file["atom_type"]},
            edge={"edge_attr": bond_type},
            graph={"y": file["y"].reshape(-1, 1)},
        )
        splits = in_order(tuple(file["split_sizes"].tolist()))
    GraphData.write(path, _about("zinc", str(source)), [graphs], splits=splits)


def load_subset(root: Root = None) -> GraphData:
    """ZINC-12k."""
    arrays = find(ARRAYS, root)
    if arrays is None:
        raise DataError(f"{ARRAYS} is not in {data_root(root)}")
    return GraphData.open_or_build(packed_path("zinc", [arrays]), lambda path: from_arrays(arrays, path))
