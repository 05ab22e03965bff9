"""Why a model says what it says of a molecule: what atoms and bonds add, and which known molecules are like it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lspe.data.errors import MoleculeError
from lspe.data.molecules.smiles import parse
from lspe.files import write_table
from lspe.files.tables import rounded
from lspe.predict.attribution import attribute
from lspe.predict.known import Neighbour, fingerprints_of
from lspe.predict.member import GraphsWithEncodings
from lspe.predict.molecules import read_pieces
from lspe.predict.naming import output_names
from lspe.predict.predictor import Predictor

NEIGHBOURS = 6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explanation:
    """What adds up to the predictions of a molecule, one column for each of the K outputs.

    ``value`` [K] = ``baseline`` + ``atoms`` + ``bonds`` + ``descriptors`` + ``forest`` + ``calibration`` + ``rest``:

    - ``baseline`` [K]: what the networks say where nothing is known of a molecule;
    - ``atoms`` [n, K], in the order of the SMILES, of which ``positions`` [n, K] are due to an atom's place in the
      graph; ``bonds`` [b, K] between the atoms ``ends`` [b, 2];
    - ``descriptors`` [K]: of the molecule as a whole, extra columns among them;
    - ``forest`` [K]: what the forest says, by its weight; it does not look at single atoms;
    - ``calibration`` [K]: how much the sum of all others is moved so that probabilities are frequencies;
    - ``rest`` [K]: what integrating by steps missed, at most about one percent of the way from the baseline.
    """

    smiles: str
    outputs: tuple[str, ...]
    value: Floats
    baseline: Floats
    symbols: tuple[str, ...]
    atoms: Floats
    positions: Floats
    ends: NDArray[np.int64]
    bonds: Floats
    descriptors: Floats
    forest: Floats
    calibration: Floats
    rest: Floats
    neighbours: tuple[Neighbour, ...]

    def parts(self) -> dict[str, Floats]:
        """What adds up to the value, [K] each; atoms and bonds as a whole."""
        return {
            "baseline": self.baseline,
            "atoms": self.atoms.sum(axis=0),
            "bonds": self.bonds.sum(axis=0),
            "descriptors": self.descriptors,
            "forest": self.forest,
            "calibration": self.calibration,
            "rest": self.rest,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each part of the prediction; of an atom also what its position has of it."""
        for name in ("value", "baseline", "descriptors", "forest", "calibration", "rest"):
            yield self._row(name, "", "", getattr(self, name), None)
        for number, symbol in enumerate(self.symbols):
            yield self._row("atom", str(number), symbol, self.atoms[number], self.positions[number])
        for number, (i, j) in enumerate(self.ends.tolist()):
            yield self._row("bond", f"{i}-{j}", f"{self.symbols[i]}-{self.symbols[j]}", self.bonds[number], None)

    def _row(self, part: str, number: str, symbol: str, values: Floats, positions: Floats | None) -> dict[str, Any]:
        row: dict[str, Any] = {"smiles": self.smiles, "part": part, "number": number, "symbol": symbol}
        for place, name in enumerate(self.outputs):
            row[name] = rounded(values[place])
            row[f"{name} by position"] = None if positions is None else rounded(positions[place])
        return row


def explain(
    predictor: Predictor, smiles: str, *, extra: ArrayLike | None = None, neighbours: int = NEIGHBOURS
) -> Explanation:
    """Why the model predicts what it does for a molecule."""
    predictor.check_level("graph", "an explanation is of")
    outputs = output_names(predictor.task, predictor.task_names, predictor.class_names)
    numbers = predictor.checked_extra(None if extra is None else np.reshape(extra, (1, -1)), 1)
    [(_, read)] = read_pieces(
        [[smiles]], lambda one: one, predictor.features, predictor.fragments, 1, predictor.descriptors
    )
    if read.reasons:
        raise MoleculeError(smiles, read.reasons[0])
    graphs = GraphsWithEncodings(read.graphs, read.descriptors, numbers if predictor.extra_names else None)
    mol = parse(smiles, fragments=predictor.fragments)
    number_of_bond = _bond_of_each_edge(mol, read.graphs.source, read.graphs.target)
    shape = (mol.GetNumAtoms(), len(outputs))
    baseline, descriptors, forest, rest = (np.zeros(len(outputs)) for _ in range(4))
    atoms, positions, bonds = np.zeros(shape), np.zeros(shape), np.zeros((mol.GetNumBonds(), len(outputs)))
    for member, weight in zip(predictor.members, predictor.weights, strict=False):
        found = attribute(member, graphs.for_network(member))
        baseline += weight * found.baseline
        atoms += weight * (found.nodes + found.positions)
        positions += weight * found.positions
        np.add.at(bonds, number_of_bond, weight * found.edges)
        descriptors += weight * found.descriptors
        rest += weight * found.rest
    for one, weight in zip(predictor.forests, predictor.weights[len(predictor.members) :], strict=True):
        forest += weight * one.predict(read.descriptors, graphs.extra)[0]
    total = np.sum((baseline, atoms.sum(axis=0), bonds.sum(axis=0), descriptors, forest, rest), axis=0)
    value = total if predictor.calibration is None else predictor.calibration.apply(total, predictor.task)
    return Explanation(
        smiles,
        tuple(outputs),
        value,
        baseline,
        tuple(atom.GetSymbol() for atom in mol.GetAtoms()),
        atoms,
        positions,
        np.array([[one.GetBeginAtomIdx(), one.GetEndAtomIdx()] for one in mol.GetBonds()]).reshape(-1, 2),
        bonds,
        descriptors,
        forest,
        value - total,
        rest,
        tuple(_neighbours(predictor, smiles, graphs, neighbours)),
    )


def _bond_of_each_edge(mol: Any, source: NDArray[Any], target: NDArray[Any]) -> NDArray[np.int64]:
    pairs = zip(source.tolist(), target.tolist(), strict=True)
    return np.array([mol.GetBondBetweenAtoms(i, j).GetIdx() for i, j in pairs], dtype=np.int64)


def _neighbours(predictor: Predictor, smiles: str, graphs: GraphsWithEncodings, count: int) -> list[Neighbour]:
    known = predictor.known
    if known is None or not count:
        return []
    vectors = predictor.members[0].graph_vectors(graphs)
    bits = fingerprints_of([smiles], predictor.fragments)
    return known.nearest(vectors, bits, count=count, task=predictor.task, class_names=predictor.class_names)[0]


def write_explanations(explanations: Sequence[Explanation], task_names: Sequence[str], folder: Path) -> None:
    """contributions.csv, a row for each part of each prediction, and neighbours.csv."""
    write_table(folder / "contributions.csv", [row for one in explanations for row in one.rows()])
    rows = []
    for one in explanations:
        for neighbour in one.neighbours:
            labels = dict(zip(task_names, neighbour.labels, strict=True))
            rows.append(
                {
                    "smiles": one.smiles,
                    "neighbour": neighbour.smiles,
                    "name": neighbour.name,
                    **labels,
                    "tanimoto": round(neighbour.tanimoto, 4),
                    "learned": round(neighbour.learned, 4),
                }
            )
    if rows:
        write_table(folder / "neighbours.csv", rows)
