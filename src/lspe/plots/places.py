"""Where the nodes of a graph are drawn."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mol = Any
Places = NDArray[np.float64]

_HIDDEN = 0.2
_NEAR = 0.45
_LARGEST_CAGE = 80


def molecule_places(mol: Mol) -> Places:
    """``[n, 2]``: where RDKit puts the atoms, in the one of its ways that lets fewest rings overlap; those of a cage,
    which all of them lay on top of each other, where springs do if that is better.
    """
    from rdkit import Chem
    from rdkit.Chem import rdCoordGen, rdDepictor

    def plain() -> None:
        rdDepictor.Compute2DCoords(mol, canonOrient=True)

    def by_templates() -> None:
        rdDepictor.Compute2DCoords(mol, canonOrient=True, useRingTemplates=True)

    def by_coordgen() -> None:
        rdCoordGen.AddCoords(mol)

    mol = Chem.Mol(mol)
    mol.UpdatePropertyCache(strict=False)
    bonds = bonds_of(mol)
    found: list[Places] = []
    for way in (plain, by_templates, by_coordgen):
        way()
        rdDepictor.StraightenDepiction(mol)
        found.append(normalised(mol.GetConformer().GetPositions()[:, :2]))
        if not _faults(found[-1], bonds):
            return found[-1]
    if _is_cage(mol) and all(_hidden_bonds(places, bonds) for places in found):
        import networkx as nx

        graph = nx.Graph(bonds.tolist())
        graph.add_nodes_from(range(mol.GetNumAtoms()))
        springs = spring_places(graph, dict(enumerate(found[0].tolist())))
        found.append(normalised(np.array([springs[atom] for atom in range(mol.GetNumAtoms())])))
    return min(found, key=lambda places: _faults(places, bonds))


def _is_cage(mol: Mol) -> bool:
    """Whether springs may pull at it: they do not know which side of a double bond an atom belongs to."""
    from rdkit.Chem import BondStereo

    return mol.GetNumAtoms() <= _LARGEST_CAGE and all(
        bond.GetStereo() in (BondStereo.STEREONONE, BondStereo.STEREOANY) for bond in mol.GetBonds()
    )


def _faults(places: Places, bonds: NDArray[np.int64]) -> int:
    """Bonds that cross or pass under an atom, and pairs of atoms that nearly coincide."""
    return _crossings(places, bonds) + _hidden_bonds(places, bonds) + len(_tree(places).query_pairs(_NEAR))


def _crossings(places: Places, bonds: NDArray[np.int64]) -> int:
    """How many pairs of bonds without a common atom cross."""
    start, end = places[bonds[:, 0]], places[bonds[:, 1]]
    along = end - start

    def side_of(points: Places) -> NDArray[np.float64]:
        """On which side of each bond (rows) each point (columns) lies."""
        away = points[None] - start[:, None]
        return np.sign(along[:, None, 0] * away[..., 1] - along[:, None, 1] * away[..., 0])

    parts = side_of(start) * side_of(end) < 0
    common = (bonds[:, None, :, None] == bonds[None, :, None, :]).any(axis=(2, 3))
    return int((parts & parts.T & ~common).sum()) // 2


def _hidden_bonds(places: Places, bonds: NDArray[np.int64]) -> int:
    """How often a bond passes under an atom that is none of its ends."""
    start, along = places[bonds[:, 0]], places[bonds[:, 1]] - places[bonds[:, 0]]
    to_atom = places[None] - start[:, None]
    length = np.maximum((along**2).sum(1), 1e-9)
    part = np.clip((to_atom * along[:, None]).sum(2) / length[:, None], 0, 1)
    distance = np.linalg.norm(to_atom - part[:, :, None] * along[:, None], axis=2)
    np.put_along_axis(distance, bonds, np.inf, axis=1)
    return int((distance < _HIDDEN).sum())


def spring_places(graph: Any, start: dict[Hashable, Any] | None = None) -> dict[Hashable, tuple[float, float]]:
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


def normalised(places: Places) -> Places:
    """Centred, and scaled so that the nearest neighbours of nodes are a distance of 1 away (the median)."""
    if len(places) < 2:
        return np.zeros_like(places)
    distance, _ = _tree(places).query(places, k=2)
    nearest = float(np.median(distance[:, 1]))
    return (places - (places.max(0) + places.min(0)) / 2) / (nearest if nearest > 1e-9 else 1.0)


def _tree(places: Places) -> Any:
    from scipy.spatial import KDTree

    return KDTree(places)


def bonds_of(mol: Mol) -> NDArray[np.int64]:
    """``[b, 2]``: both ends of each bond."""
    return edge_array((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds())


def edge_array(edges: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(list(edges), dtype=np.int64).reshape(-1, 2)
