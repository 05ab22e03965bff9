"""Many molecules to graphs, in parallel processes, with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lspe.data.molecules.processes import map_in_processes, processes_for
from lspe.data.molecules.smiles import MoleculeArrays, Readings, arrays_for, parse, read_smiles
from lspe.data.packed.container import Array
from lspe.data.packed.pointers import Index
from lspe.data.packed.sets import PackedGraphs
from lspe.data.packed.undirected import both_directions
from lspe.data.packed.writer import concatenate
from lspe.data.progress import progress_bar
from lspe.data.words import DescriptorKind, Fragments
from lspe.features import Features, OGBFeatures

if TYPE_CHECKING:
    from torch_geometric.data import Data

OGB = OGBFeatures()
AT_ONCE = 500


@dataclass(frozen=True)
class MoleculeGraphs:
    """Graphs of molecules: `rows` [G] says which SMILES each is, `reasons` why the others are none.

    `descriptors` are those of the molecules as a whole, [G, width], where they were asked for; `extra` [G, E] are
    further numbers of them.
    """

    graphs: PackedGraphs
    rows: Index
    reasons: dict[int, str]
    descriptors: Mapping[DescriptorKind, Array] = field(default_factory=dict)
    extra: Array | None = None

    @property
    def count(self) -> int:
        """Of the SMILES, those included that are no graph."""
        return len(self.rows) + len(self.reasons)


def smiles_to_data(smiles: str, features: Features = OGB, *, fragments: Fragments = "keep") -> Data:
    """The graph of one SMILES, with OGB's atom and bond features unless others are asked for."""
    return to_packed(arrays_for(features)([parse(smiles, fragments=fragments)]))[0]


def smiles_to_graphs(
    smiles: Sequence[str], features: Features = OGB, *, fragments: Fragments = "keep", processes: int | None = None
) -> MoleculeGraphs:
    """The graphs of a list of SMILES, in memory; SMILES that cannot be read are left out, with the reason."""
    graphs, rows = [], []
    reasons: dict[int, str] = {}
    work = partial(read_smiles, features=features, fragments=fragments)
    for begin, reading in iter_readings(work, smiles, processes=processes):
        graphs.append(to_packed(reading.arrays))
        rows.append(reading.rows + begin)
        reasons |= {begin + row: reason for row, reason in reading.reasons.items()}
    if not graphs:
        graphs, rows = [to_packed(work([]).arrays)], [np.empty(0, dtype=np.int64)]
    return MoleculeGraphs(concatenate(graphs), np.concatenate(rows), reasons)


def iter_readings(
    work: Callable[[Sequence[str]], Readings],
    smiles: Sequence[str],
    *,
    processes: int | None = None,
    label: str = "molecules to graphs",
) -> Iterator[tuple[int, Readings]]:
    """What `work` makes of the SMILES, some hundreds at a time, each with the position of its first one.

    In several processes (as many as there are cores, if not said) where there is enough to do.
    """
    pieces = (smiles[begin : begin + AT_ONCE] for begin in range(0, len(smiles), AT_ONCE))
    begin = 0
    for reading in iter_pieces(work, pieces, len(smiles), processes=processes, label=label):
        yield begin, reading
        begin += reading.count


def iter_pieces(
    work: Callable[[Sequence[str]], Readings],
    pieces: Iterable[Sequence[str]],
    count: int,
    *,
    processes: int | None = None,
    label: str = "molecules to graphs",
) -> Iterator[Readings]:
    """What `work` makes of lists of SMILES, `count` of them altogether."""
    with progress_bar(label, count) as advance:
        for reading in map_in_processes(work, pieces, processes=processes or processes_for(count)):
            yield reading
            advance(reading.count)


def to_packed(arrays: MoleculeArrays, graph: dict[str, Array] | None = None) -> PackedGraphs:
    """Graphs with every bond in both directions."""
    num_edges, edge_index, (edge_attr,) = both_directions(arrays.num_bonds, arrays.bonds, arrays.edge_attr)
    return PackedGraphs.from_arrays(
        arrays.num_nodes, num_edges, edge_index, node={"x": arrays.x}, edge={"edge_attr": edge_attr}, graph=graph
    )
