"""The molecules a model was trained on, as a file of the run folder: how near is a new one, and to which?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lspe.data import GraphData
from lspe.data.errors import CorruptFileError
from lspe.data.molecules.descriptors import describe, describe_here
from lspe.data.packed.container import Array, ArrayWriter, open_arrays
from lspe.data.words import Fragments, TaskKind
from lspe.files.tables import rounded
from lspe.predict.member import GraphsWithEncodings, Member

KNOWN = "known.lspe"
MOST_KNOWN = 50_000
"""Molecules that are kept to compare others with; of more of them, as many drawn at random."""

Floats = NDArray[np.float64]


class Neighbour(NamedTuple):
    """A molecule of the training set, what is known of it, and how similar it is to another one.

    ``labels`` are in the order of the targets, ``None`` where one is missing. Both similarities are at most 1:
    ``tanimoto`` of Morgan fingerprints, ``learned`` the cosine between what the first network reads out of each,
    relative to the mean of the training set.
    """

    smiles: str
    name: str
    labels: tuple[float | str | None, ...]
    tanimoto: float
    learned: float


@dataclass(frozen=True)
class KnownMolecules:
    """Training molecules: SMILES and names [M], ``y`` [M, T] or classes [M], ``vectors`` [M, d] of the first network.

    ``bits`` [M, 256] are Morgan fingerprints of radius 2, eight bits in a byte.
    """

    smiles: Sequence[str]
    names: Sequence[str]
    y: Array
    vectors: NDArray[np.float32]
    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, member: Member, data: GraphData) -> KnownMolecules:
        """Of a network and all that was not kept apart for testing; with folds, where each is tested once, all."""
        rows = np.arange(len(data.graphs))
        if data.splits:
            rows = np.sort(np.concatenate([data.splits["train"], data.splits["val"]]))
        if len(rows) > MOST_KNOWN:
            rows = np.sort(np.random.default_rng(0).choice(rows, MOST_KNOWN, replace=False))
        graphs = data.graphs.select(rows)
        assert data.smiles is not None, "only tables have SMILES"
        smiles = [data.smiles[row] for row in rows.tolist()]
        names = [data.molecule_names[row] for row in rows.tolist()] if data.molecule_names is not None else []
        counts = data.descriptors["morgan"][rows] if "morgan" in data.descriptors else None
        if counts is None:
            counts = describe(smiles, "morgan", fragments=member.fragments)
        vectors = member.graph_vectors(GraphsWithEncodings(graphs))
        return cls(smiles, names, graphs.y, vectors, packed_bits(counts))

    def arrays(self) -> dict[str, Array]:
        """Everything as numbers, for a file."""
        return {
            "smiles": _as_bytes(self.smiles),
            "names": _as_bytes(self.names),
            "y": self.y,
            "vectors": self.vectors,
            "bits": self.bits,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], place: str = "") -> KnownMolecules:
        """The inverse of :meth:`arrays`, whose names begin with ``place``."""
        parts = {name: arrays[f"{place}{name}"] for name in ("smiles", "names", "y", "vectors", "bits")}
        smiles, names = _as_texts(parts["smiles"]), _as_texts(parts["names"])
        return cls(smiles, names, parts["y"], parts["vectors"], parts["bits"])

    @classmethod
    def open(cls, path: Path) -> KnownMolecules:
        """What :meth:`save` wrote."""
        try:
            return cls.from_arrays(open_arrays(path).arrays)
        except LookupError as error:
            raise CorruptFileError(f"{path} holds no molecules ({error}): put back a copy of it") from None

    def save(self, path: Path) -> None:
        """Write everything into one file."""
        with ArrayWriter(path) as writer:
            for name, array in self.arrays().items():
                writer.append(name, array)
            writer.finish({"molecules": len(self.smiles)})

    def similarities(self, vectors: NDArray[np.float32], bits: NDArray[np.uint8]) -> tuple[Floats, Floats]:
        """Tanimoto and learned similarity of some molecules to all that are known, [G, M] each."""
        from rdkit import DataStructs

        tanimoto = [DataStructs.BulkTanimotoSimilarity(_fingerprint(one), self._fingerprints) for one in bits]
        learned = _directions(vectors, self._mean) @ self._directions.T
        return np.array(tanimoto).reshape(len(bits), len(self.smiles)), learned

    def nearest(
        self,
        vectors: NDArray[np.float32],
        bits: NDArray[np.uint8],
        *,
        count: int,
        task: TaskKind,
        class_names: Sequence[str] = (),
    ) -> list[list[Neighbour]]:
        """For each molecule the ``count`` that are nearest: half of them by each similarity, the nearest first."""
        found = []
        for tanimoto, learned in zip(*self.similarities(vectors, bits), strict=True):
            orders = [np.argsort(-one, kind="stable").tolist() for one in (tanimoto, learned)]
            in_turns = [row for pair in zip(*orders, strict=True) for row in pair]
            rows = sorted(list(dict.fromkeys(in_turns))[:count], key=lambda row: (-tanimoto[row], -learned[row]))
            found.append(
                [
                    Neighbour(
                        self.smiles[row],
                        self.names[row] if self.names else "",
                        self._labels(row, task, class_names),
                        float(tanimoto[row]),
                        float(learned[row]),
                    )
                    for row in rows
                ]
            )
        return found

    def _labels(self, row: int, task: TaskKind, class_names: Sequence[str]) -> tuple[float | str | None, ...]:
        if task == "multiclass":
            number = int(self.y[row])
            return (class_names[number] if number >= 0 else None,)
        return tuple(rounded(value) for value in self.y[row].tolist())

    @cached_property
    def _mean(self) -> Floats:
        return np.asarray(self.vectors.mean(axis=0, dtype=np.float64))

    @cached_property
    def _directions(self) -> Floats:
        return _directions(self.vectors, self._mean)

    @cached_property
    def _fingerprints(self) -> list[Any]:
        return [_fingerprint(one) for one in self.bits]


def fingerprints_of(smiles: Sequence[str], fragments: Fragments) -> NDArray[np.uint8]:
    """Morgan fingerprints of molecules that can be read, [G, 256], eight bits in a byte."""
    return packed_bits(describe_here(smiles, "morgan", fragments))


def packed_bits(counts: Array) -> NDArray[np.uint8]:
    """Which environments occur at all, eight in a byte: [G, 2048] → [G, 256]."""
    return np.packbits(counts > 0, axis=1, bitorder="little")


def _fingerprint(bits: NDArray[np.uint8]) -> Any:
    from rdkit import DataStructs

    return DataStructs.CreateFromBinaryText(bits.tobytes())  # type: ignore[arg-type]  # the stub says str


def _directions(vectors: NDArray[np.float32], mean: Floats) -> Floats:
    """Of unit length, seen from the mean."""
    away = vectors.astype(np.float64) - mean
    return np.asarray(away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12))


def _as_bytes(texts: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(" ".join(text.split()) for text in texts).encode(), dtype=np.uint8)


def _as_texts(data: NDArray[np.uint8]) -> list[str]:
    return data.tobytes().decode().split("\n") if len(data) else []
