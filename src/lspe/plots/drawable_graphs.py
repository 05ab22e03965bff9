"""A graph that can be drawn: nodes with a place in the plane and a label, edges with a bond order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.data.molecules.smiles import parse

Mol = Any
Places = NDArray[np.float64]

_HIDDEN = 0.2
_LARGEST_CAGE = 80


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
    bonds = _edge_array((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds())
    return Sketch(
        _molecule_places(mol, bonds),
        bonds,
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
        places = _spring_places(graph)
    edges = _edge_array(dict.fromkeys((number[i], number[j]) for i, j in graph.edges()))
    return Sketch(
        _normalised(np.array([places[node] for node in number], dtype=float).reshape(-1, 2)),
        edges,
        (1,) * len(edges),
        tuple(str(node) for node in number),
        (0,) * len(number),
        directed=graph.is_directed(),
    )


def _edge_array(edges: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(list(edges), dtype=np.int64).reshape(-1, 2)


def _molecule_places(mol: Mol, bonds: NDArray[np.int64]) -> Places:
    """Where RDKit puts the atoms; those of a cage, which it lays on top of each other, where springs do if that is
    better.
    """
    from rdkit.Chem import rdDepictor

    mol.UpdatePropertyCache(strict=False)
    rdDepictor.Compute2DCoords(mol, canonOrient=True)
    rdDepictor.StraightenDepiction(mol)
    places = _normalised(mol.GetConformer().GetPositions()[:, :2])
    hidden = _hidden_bonds(places, bonds)
    if hidden and len(places) <= _LARGEST_CAGE:
        import networkx as nx

        graph = nx.Graph(bonds.tolist())
        graph.add_nodes_from(range(len(places)))
        springs = _spring_places(graph, dict(enumerate(places.tolist())))
        sprung = _normalised(np.array([springs[atom] for atom in range(len(places))]))
        return sprung if _hidden_bonds(sprung, bonds) < hidden else places
    return places


def _hidden_bonds(places: Places, bonds: NDArray[np.int64]) -> int:
    """How often a bond passes under an atom that is none of its ends."""
    start, along = places[bonds[:, 0]], places[bonds[:, 1]] - places[bonds[:, 0]]
    to_atom = places[None] - start[:, None]
    length = np.maximum((along**2).sum(1), 1e-9)
    part = np.clip((to_atom * along[:, None]).sum(2) / length[:, None], 0, 1)
    distance = np.linalg.norm(to_atom - part[:, :, None] * along[:, None], axis=2)
    np.put_along_axis(distance, bonds, np.inf, axis=1)
    return int((distance < _HIDDEN).sum())


def _spring_places(graph: Any, start: dict[Hashable, Any] | None = None) -> dict[Hashable, tuple[float, float]]:
    """Each connected part by Kamada and Kawai's springs, and the parts side by side."""
    import networkx as nx

    undirected = nx.Graph(graph)
    places: dict[Hashable, tuple[float, float]] = {}
    right = 0.0
    for part in nx.connected_components(undirected):
        begin = None if start is None else {node: start[node] for node in part}
        layout = nx.kamada_kawai_layout(undirected.subgraph(part), pos=begin, scale=max(0.5, len(part) ** 0.5 / 2))
        left = min(x for x, _ in layout.values())
        places |= {node: (x - left + right, y) for node, (x, y) in layout.items()}
        right = max(x for x, _ in places.values()) + 1.0
    return places


def _normalised(places: Places) -> Places:
    """Centred, and scaled so that the nearest neighbours of nodes are a distance of 1 away (the median)."""
    from scipy.spatial import KDTree

    if len(places) < 2:
        return np.zeros_like(places)
    distance, _ = KDTree(places).query(places, k=2)
    nearest = float(np.median(distance[:, 1]))
    return (places - (places.max(0) + places.min(0)) / 2) / (nearest if nearest > 1e-9 else 1.0)
