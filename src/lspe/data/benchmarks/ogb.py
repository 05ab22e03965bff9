"""ogbg-moltox21 and ogbg-molpcba: molecules with many binary targets, most of them missing.

Read from OGB's archives (its raw ``csv.gz`` layout and split files), a block of graphs at a time, or, for
moltox21, from the same graphs as arrays.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from lspe.data.benchmarks.download import Source, find, obtain
from lspe.data.errors import DataError, MoleculeError
from lspe.data.graphdata import Description, GraphData
from lspe.data.molecules.processes import Refused
from lspe.data.molecules.smiles import parse_here
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import Array, open_npz
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.undirected import both_directions
from lspe.data.splits import Splits, by_code, check_partition
from lspe.features import OGB_ATOM_TABLE, OGB_BOND_TABLE, OGBFeatures
from lspe.locations import Root, data_root

_URL = "https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download"
_TOX21 = Source("tox21.zip", f"{_URL}/tox21.zip", None)  # nobody has published a digest of it
_PCBA = Source(  # the digest is TensorFlow Datasets', ogbg_molpcba/checksums.tsv
    "pcba.zip", f"{_URL}/pcba.zip", "0bb12da2f3ec8b0bb80564114a6174fad2df6a3a0d3c19470b3a27813a7d4e53"
)
_ARRAYS, _TABLE = "tox21_graphs.npz", "tox21.csv.gz"
_MAPPING = "mapping/mol.csv.gz"
_TOX21_MOLECULES = 7831
_TOX21_TASKS = (
    "NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma",
    "SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53",
)  # fmt: skip
_PCBA_TASKS = tuple(f"assay {number}" for number in range(1, 129))
_BLOCK = 20_000


def load_moltox21(root: Root = None) -> GraphData:
    """7,831 molecules, 12 toxicity targets."""
    if (arrays := find(_ARRAYS, root)) is not None:
        path = packed_path("moltox21", arrays)
        return GraphData.open_or_build(path, lambda path: from_arrays(path, arrays))
    return _load_official("moltox21", _TOX21, _TOX21_TASKS, _TOX21_MOLECULES, root)


def smiles_of_moltox21(root: Root = None) -> list[str]:
    """Of each graph; those that today's RDKit does not read are :class:`Refused`, and nothing is known of them."""
    import pandas as pd

    if find(_ARRAYS, root) is not None:
        file = find(_TABLE, root)
        if file is None:
            raise DataError(
                f"{data_root(root)} has {_ARRAYS}, but not {_TABLE}, where the SMILES of its molecules stand"
            )
        table = pd.read_csv(file, usecols=["smiles"], dtype=str)
    else:
        archive = obtain(_TOX21, root)
        with zipfile.ZipFile(archive) as files:
            table = pd.read_csv(
                _Archive(files, archive).open(_MAPPING), compression="gzip", usecols=["smiles"], dtype=str
            )
    if len(table) != _TOX21_MOLECULES:
        raise DataError(f"there are SMILES of {len(table)} molecules; moltox21 has {_TOX21_MOLECULES}")
    return [_readable(smiles) for smiles in table["smiles"]]


def _readable(smiles: str) -> str:
    try:
        parse_here(smiles)
    except MoleculeError as error:
        return Refused(smiles, error.reason)
    return smiles


def load_molpcba(root: Root = None) -> GraphData:
    """437,929 molecules, 128 assays."""
    return _load_official("molpcba", _PCBA, _PCBA_TASKS, 437_929, root)


def _load_official(name: str, archive: Source, tasks: tuple[str, ...], expected: int, root: Root) -> GraphData:
    file = obtain(archive, root)
    path = packed_path(name, file)
    return GraphData.open_or_build(path, lambda path: from_archive(path, file, name, tasks, expected))


def _about(name: str, tasks: tuple[str, ...], source: Path) -> Description:
    return Description(
        name=name,
        task="binary",
        num_outputs=len(tasks),
        task_names=tasks,
        features=OGBFeatures(),
        source=str(source),
    )


def from_arrays(path: Path, source: Path) -> None:
    """Convert moltox21 given as arrays, each bond listed once, label −1 where there is none."""
    with open_npz(source) as file:
        y = file["y"].astype(np.float32)
        y[y < 0] = np.nan
        graphs = _graphs(
            file["num_nodes"],
            file["num_edges"],
            np.stack([file["edge_src"], file["edge_dst"]]),
            file["node_feat"],
            file["edge_feat"],
            y,
        )
        about = _about("moltox21", tuple(file["tasks"].tolist()), source)
        GraphData.write(path, about, [graphs], splits=by_code(file["split"]))


def from_archive(path: Path, archive: Path, name: str, tasks: tuple[str, ...], expected: int | None = None) -> None:
    """Convert OGB's archive, which should hold `expected` graphs."""
    with zipfile.ZipFile(archive) as files:
        raw = _Archive(files, archive)
        splits: Splits = {
            ours: raw.whole(f"split/scaffold/{theirs}.csv.gz")[:, 0].astype(np.int64)
            for ours, theirs in (("train", "train"), ("val", "valid"), ("test", "test"))
        }
        num_nodes = raw.whole("raw/num-node-list.csv.gz")[:, 0].astype(np.int64)
        num_edges = raw.whole("raw/num-edge-list.csv.gz")[:, 0].astype(np.int64)
        if expected is not None and len(num_nodes) != expected:
            raise DataError(f"{archive} holds {len(num_nodes)} graphs; {name} has {expected}")
        check_partition(splits, len(num_nodes), str(archive))
        blocks = _blocks(raw, num_nodes, num_edges, len(tasks), archive)
        GraphData.write(path, _about(name, tasks, archive), blocks, splits=splits)


def _blocks(raw: _Archive, num_nodes: Array, num_edges: Array, tasks: int, archive: Path) -> Iterator[PackedGraphs]:
    """The graphs, some thousands at a time, reading each file of the archive from front to back once."""
    nodes, features = raw.reader("raw/node-feat.csv.gz"), raw.reader("raw/edge-feat.csv.gz")
    edges, labels = raw.reader("raw/edge.csv.gz"), raw.reader("raw/graph-label.csv.gz")
    for begin in range(0, len(num_nodes), _BLOCK):
        here = slice(begin, begin + _BLOCK)
        node_count, edge_count = int(num_nodes[here].sum()), int(num_edges[here].sum())
        y = labels.take(len(num_nodes[here]), tasks)
        strange = y[~(np.isnan(y) | (y == 0) | (y == 1))]
        if len(strange):
            raise DataError(f"{archive}: a label is {strange[0]:g}; labels are 0, 1 or empty")
        yield _graphs(
            num_nodes[here],
            num_edges[here],
            edges.take(edge_count, 2).astype(np.int64).T,
            _checked(nodes.take(node_count, 9), OGB_ATOM_TABLE, nodes.what),
            _checked(features.take(edge_count, 3), OGB_BOND_TABLE, features.what),
            y.astype(np.float32),
        )
    for reader in (nodes, features, edges, labels):
        reader.check_end()


def _checked(values: Array, table: tuple[int, ...], what: str) -> Array:
    """Whole numbers, each below the number of entries of its feature's table."""
    wrong = ~((values >= 0) & (values < table) & (values == np.floor(values)))
    if wrong.any():
        column = int(np.argwhere(wrong)[0, 1])
        raise DataError(f"{what}: feature {column} is {values[wrong][0]:g}; it has entries 0 … {table[column] - 1}")
    return values.astype(np.uint8)


def _graphs(num_nodes: Array, num_bonds: Array, bonds: Array, x: Array, edge_attr: Array, y: Array) -> PackedGraphs:
    num_edges, edge_index, (edge_attr,) = both_directions(num_bonds, bonds, edge_attr)
    return PackedGraphs.from_arrays(
        num_nodes, num_edges, edge_index, node={"x": x}, edge={"edge_attr": edge_attr}, graph={"y": y}
    )


class _Archive:
    """The tables inside OGB's zip file, all under one folder whose name does not matter."""

    def __init__(self, files: zipfile.ZipFile, path: Path) -> None:
        self.files = files
        self.path = path
        self.names = {name.partition("/")[2]: name for name in files.namelist()}

    def open(self, name: str) -> IO[bytes]:
        if name not in self.names:
            raise DataError(f"{self.path} has no {name}; it is not OGB's archive")
        return self.files.open(self.names[name])

    def reader(self, name: str) -> _Rows:
        return _Rows(self.open(name), f"{self.path}: {name}")

    def whole(self, name: str) -> Array:
        return self.reader(name).take(None, 1)


class _Rows:
    """A csv.gz table without header, read on from where the last call stopped."""

    def __init__(self, file: Any, what: str) -> None:
        import pandas as pd

        self.what = what
        self.chunks = pd.read_csv(file, compression="gzip", header=None, dtype=np.float64, iterator=True)

    def take(self, count: int | None, columns: int) -> Array:
        """The next `count` rows (all that are left for ``None``), [count, columns]."""
        if count == 0:
            return np.empty((0, columns))
        try:
            rows: Array = self.chunks.read(count).to_numpy()
        except StopIteration:
            rows = np.empty((0, columns))
        if rows.shape[1] != columns or (count is not None and len(rows) != count):
            raise DataError(f"{self.what}: {count or 'some'} rows of {columns} values expected, found {rows.shape}")
        return rows

    def check_end(self) -> None:
        """There must be no row left."""
        try:
            left = len(self.chunks.read(1))
        except StopIteration:
            left = 0
        if left:
            raise DataError(f"{self.what}: more rows than the graphs need")
