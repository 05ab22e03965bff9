"""A graph that can be drawn: nodes with a place in the plane and a label, edges with a bond order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.data.molecules.smiles import parse
from lspe.plots.places import Mol, Places, bonds_of, edge_array, molecule_places, normalised, spring_places


@dataclass(frozen=True)
class Sketch:
    r"""A graph and its picture.

    Shapes, with :math:`n` nodes and :math:`m` edges:
        - **places:** :math:`[n, 2]`, y upwards, centred, neighbouring nodes about 1 apart
        - **edges:** :math:`[m, 2]`, each once; from first to second where the graph is `directed`
        - **orders:** :math:`[m]`, 1, 2 or 3 for bonds; 1 for all other edges
        - **names:** :math:`[n]`, the element of an atom, the name of any other node
        - **charges:** :math:`[n]`, zero but for atoms
    """

    places: Places
    edges: NDArray[np.int64]
    orders: tuple[int, ...]
    names: tuple[str, ...]
    charges: tuple[int, ...]
    is_molecule: bool = False
    directed: bool = False

    @property
    def num_nodes(self) -> int:
        return len(self.names)

    @property
    def edge_index(self) -> Tensor:
        """``[2, E]``, each edge in both directions unless the graph is directed."""
        edges = torch.from_numpy(self.edges)
        if not self.directed:
            edges = torch.cat([edges, edges[edges[:, 0] != edges[:, 1]].flip(1)])
        return edges.t().contiguous()

    def label(self, node: int) -> str:
        """Name and charge: ``C``, ``N+``, ``Fe2+``."""
        charge = self.charges[node]
        size = str(abs(charge)) if abs(charge) > 1 else ""
        return self.names[node] + (size + ("+" if charge > 0 else "−") if charge else "")

    def to_networkx(self) -> Any:
        """The graph without the picture; atoms have the attribute ``element``."""
        import networkx as nx

        graph = nx.DiGraph() if self.directed else nx.Graph()
        for node, name in enumerate(self.names):
            graph.add_node(node, **({"element": name} if self.is_molecule else {}))
        graph.add_edges_from(self.edges.tolist())
        return graph


def sketch_smiles(smiles: str) -> Sketch:
    """A molecule as chemists draw it; a :class:`~lspe.data.DataError` says what is wrong with the SMILES."""
    return sketch_molecule(parse(smiles))


def sketch_molecule(mol: Mol) -> Sketch:
    """An RDKit molecule, which may be unsanitised, in Kekulé form."""
    from rdkit import Chem

    mol = Chem.Mol(mol)
    if any(atom.GetIsAromatic() for atom in mol.GetAtoms()):
        Chem.Kekulize(mol, clearAromaticFlags=True)
    return Sketch(
        molecule_places(mol),
        bonds_of(mol),
        tuple(min(3, max(1, round(bond.GetBondTypeAsDouble()))) for bond in mol.GetBonds()),
        tuple(atom.GetSymbol() for atom in mol.GetAtoms()),
        tuple(atom.GetFormalCharge() for atom in mol.GetAtoms()),
        is_molecule=True,
    )


def sketch_atoms(symbols: Sequence[str], charges: Sequence[int], bonds: Iterable[tuple[int, int, int]]) -> Sketch:
    """A molecule given as arrays: element and charge of each atom, both ends and the order of each bond."""
    from rdkit import Chem
    from rdkit.Chem import BondType

    mol = Chem.RWMol()
    for symbol, charge in zip(symbols, charges, strict=True):
        atom = Chem.Atom(symbol)
        atom.SetFormalCharge(charge)
        mol.AddAtom(atom)
    for i, j, order in bonds:
        mol.AddBond(i, j, BondType.values[order])
    return sketch_molecule(mol)


def sketch_graph(graph: Any, places: Mapping[Any, Sequence[float]] | None = None) -> Sketch:
    """A networkx graph, at the `places` given, else where springs put its nodes."""
    number = {node: i for i, node in enumerate(graph)}
    if places is None:
        places = spring_places(graph)
    edges = edge_array(dict.fromkeys((number[i], number[j]) for i, j in graph.edges()))
    return Sketch(
        normalised(np.array([places[node] for node in number], dtype=float).reshape(-1, 2)),
        edges,
        (1,) * len(edges),
        tuple(str(node) for node in number),
        (0,) * len(number),
        directed=graph.is_directed(),
    )
