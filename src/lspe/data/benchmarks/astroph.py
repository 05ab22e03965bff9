"""ca-AstroPh: who wrote a paper in astrophysics with whom. Half of the links are hidden, and to be found.

SNAP's graph of 18,772 authors and 198,050 links without self-loops. Of the links 50 % are seen, 10 % validate and 40 %
test; to the hidden ones as many pairs are added that are not joined.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lspe.data.benchmarks.download import find
from lspe.data.errors import DataError
from lspe.data.graphdata import GraphData
from lspe.data.graphs.pyg import from_pyg
from lspe.data.packed.cache import packed_path
from lspe.data.packed.container import open_npz
from lspe.data.splits import Fractions
from lspe.locations import Root, data_root

NAME = "ca-astroph"
FILE = "ca_astroph.npz"
FRACTIONS: Fractions = (0.5, 0.1, 0.4)


def load(root: Root = None) -> GraphData:
    """The graph with half of its links hidden."""
    arrays = find(FILE, root)
    if arrays is None:
        raise DataError(f"{FILE} is not in {data_root(root)}: put it there, or name its folder with --root")
    return GraphData.open_or_build(packed_path(NAME, arrays), lambda path: build(path, arrays))


def build(path: Path, arrays: Path) -> None:
    """Convert the arrays: ``edges`` [E, 2] once each, ``num_nodes``."""
    with open_npz(arrays) as file:
        edges, nodes = torch.from_numpy(file["edges"]).long(), int(file["num_nodes"])
    graph = Data(edge_index=to_undirected(edges.T, num_nodes=nodes), num_nodes=nodes)
    from_pyg(graph, level="link", fractions=FRACTIONS, name=NAME).save(path)
