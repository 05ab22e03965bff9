"""ZINC: 12,000 molecules (``zinc``) or all 249,456 (``zinc-full``) with penalised, normalised logP."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lspe.data.benchmarks.download import Source, find, obtain
from lspe.data.errors import DataError
from lspe.data.graphdata import Description, GraphData
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import Array, open_npz
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.undirected import both_directions
from lspe.data.splits import NAMES, in_order
from lspe.features import CategoricalFeatures
from lspe.locations import Root

VOCABULARY = (
    "C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +", "N -", "S -", "I",
    "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +", "S H1 +", "C H1 -", "P H1 +",
)  # fmt: skip
FEATURES = CategoricalFeatures(node_types=28, edge_types=4, vocabulary=VOCABULARY)

_ARRAYS = "zinc12k_graphs.npz"
_TABLE = "zinc250k.csv.gz"
# Nobody has published a digest of these; the indices are those of one commit.
_ARCHIVE = Source("molecules.zip", "https://www.dropbox.com/s/feo9qle74kg48gy/molecules.zip?dl=1", None)
_REPOSITORY = "https://raw.githubusercontent.com/graphdeeplearning/benchmarking-gnns"
_COMMIT = "b6c407712fa576e9699555e1e035d1e327ccae6c"
_INDICES = {
    name: Source(f"molecules/{name}.index", f"{_REPOSITORY}/{_COMMIT}/data/molecules/{name}.index", None)
    for name in NAMES
}
_SUBSET_SIZES = (10_000, 1_000, 1_000)
_FULL_SIZES = (220_011, 24_445, 5_000)
_BLOCK = 2_000


def load_subset(root: Root = None) -> GraphData:
    """ZINC-12k: 10,000 + 1,000 + 1,000."""
    if (arrays := find(_ARRAYS, root)) is not None:
        path = packed_path("zinc", arrays)
        return GraphData.open_or_build(path, lambda path: from_arrays(path, arrays))
    archive = obtain(_ARCHIVE, root)
    indices = {name: obtain(source, root) for name, source in _INDICES.items()}
    path = packed_path("zinc", archive, *indices.values())
    return GraphData.open_or_build(path, lambda path: from_archive(path, archive, indices, _SUBSET_SIZES))


def load_full(root: Root = None) -> GraphData:
    """ZINC-full: 220,011 + 24,445 + 5,000."""
    if (table := find(_TABLE, root)) is not None:
        path = packed_path("zinc-full", table)
        return GraphData.open_or_build(path, lambda path: from_table(path, table))
    archive = obtain(_ARCHIVE, root)
    path = packed_path("zinc-full", archive)
    return GraphData.open_or_build(path, lambda path: from_archive(path, archive, None, _FULL_SIZES))


def _about(name: str, source: Path) -> Description:
    return Description(
        name=name,
        task="regression",
        num_outputs=1,
        task_names=("penalised logP",),
        features=FEATURES,
        source=str(source),
    )


def from_arrays(path: Path, source: Path) -> None:
    """Convert ZINC-12k given as arrays, each bond listed once."""
    with open_npz(source) as file:
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
        splits = in_order(file["split_sizes"].tolist())
    GraphData.write(path, _about("zinc", source), [graphs], splits=splits)


def from_table(path: Path, source: Path) -> None:
    """Convert ZINC-full given as a table of Kekulé SMILES, which already say every bond's order."""
    import pandas as pd

    from lspe.data.molecules.conversion import to_packed
    from lspe.data.molecules.processes import map_in_processes, processes_for

    table = pd.read_csv(source, usecols=["split", "kekule_smiles", "y"], dtype={"y": np.float32})
    y = table["y"].to_numpy().reshape(-1, 1)
    smiles = table["kekule_smiles"].tolist()
    part = table["split"].to_numpy()
    splits = {name: np.flatnonzero(part == name) for name in NAMES}
    pieces = (smiles[begin : begin + _BLOCK] for begin in range(0, len(smiles), _BLOCK))

    def parts() -> Iterator[PackedGraphs]:
        begin = 0
        for arrays in map_in_processes(_kekule_arrays, pieces, processes=processes_for(len(smiles))):
            end = begin + len(arrays.num_nodes)
            yield to_packed(arrays, {"y": y[begin:end]})
            begin = end

    GraphData.write(path, _about("zinc-full", source), parts(), splits=splits)


def _kekule_arrays(smiles: Sequence[str]) -> Any:
    from lspe.data.molecules.smiles import from_kekule_smiles, kekule_arrays

    return kekule_arrays(map(from_kekule_smiles, smiles), FEATURES)


def from_archive(
    path: Path, archive: Path, indices: dict[str, Path] | None, expected: tuple[int, int, int] | None = None
) -> None:
    """Convert the benchmark's archive: for each part a pickled list of molecules, atoms and a matrix of
    bonds.

    `indices` chooses the molecules of the subset. The pickles are read with everything forbidden but tensors.
    """
    with zipfile.ZipFile(archive) as files:
        members = {Path(name).name: name for name in files.namelist()}
        sizes: list[int] = []

        def parts() -> Iterator[PackedGraphs]:
            for name in NAMES:
                if f"{name}.pickle" not in members:
                    raise DataError(f"{archive} has no {name}.pickle; it is not the archive of ZINC")
                with files.open(members[f"{name}.pickle"]) as file:
                    molecules = _TensorsOnly(file).load()
                if indices is not None:
                    chosen = [int(number) for number in indices[name].read_text().replace(",", " ").split()]
                    molecules = [molecules[number] for number in chosen]
                sizes.append(len(molecules))
                for begin in range(0, len(molecules), _BLOCK):
                    yield _packed(molecules[begin : begin + _BLOCK])

        blocks = list(parts())
    if expected is not None and tuple(sizes) != expected:
        raise DataError(f"{archive} gives parts of {sizes} molecules; there should be {list(expected)}")
    name = "zinc-full" if indices is None else "zinc"
    GraphData.write(path, _about(name, archive), blocks, splits=in_order(sizes))


def _packed(molecules: Iterable[dict[str, Any]]) -> PackedGraphs:
    """Molecules as the archive has them: ``atom_type`` [n], ``bond_type`` [n, n], 0 where there is no bond."""
    atoms, edges, bonds, y = [], [], [], []
    for molecule in molecules:
        matrix: Array = molecule["bond_type"].numpy()
        edge = np.stack(matrix.nonzero())
        atoms.append(molecule["atom_type"].numpy().astype(np.uint8))
        edges.append(edge)
        bonds.append(matrix[edge[0], edge[1]].astype(np.uint8))
        y.append(float(molecule["logP_SA_cycle_normalized"]))
    return PackedGraphs.from_arrays(
        [len(one) for one in atoms],
        [len(one) for one in bonds],
        np.concatenate(edges, axis=1),
        node={"x": np.concatenate(atoms)},
        edge={"edge_attr": np.concatenate(bonds)},
        graph={"y": np.array(y, dtype=np.float32).reshape(-1, 1)},
    )


class _TensorsOnly(pickle.Unpickler):
    """Reads pickles of plain values and tensors; whatever else a pickle asks for is refused."""

    def find_class(self, module: str, name: str) -> Any:
        import torch

        match (module, name):
            case ("torch.storage", "_load_from_bytes"):
                return lambda content: torch.load(io.BytesIO(content), weights_only=True)
            case ("torch._utils", "_rebuild_tensor_v2") | ("collections", "OrderedDict"):
                return super().find_class(module, name)
        raise DataError(f"the archive's pickle asks for {module}.{name}, which molecules do not need; not read")
