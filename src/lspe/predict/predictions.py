"""What comes out of predicting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lspe.predict.member import Vectors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """What the networks say of some molecules.

    - `mean` [M, outputs]: values in original units, or probabilities; NaN where there is a reason. Where nodes or
      edges are predicted, a row for each of them in the molecules that could be read.
    - `sd`, of the same shape: the standard deviation over networks and forests, weighted as they are; ``None`` of a
      single network.
    - `reasons`: why the molecule in this row has no value.
    - `count`: M, of all molecules.
    - `row_of` [R]: the molecule each row of `mean` belongs to.
    - `rows` [G], `num_targets` [G], `num_nodes` [G], `vectors`: the molecules that could be read, how many predictions
      each has, their atoms, and what the first network makes of them.
    """

    mean: Floats
    sd: Floats | None
    reasons: dict[int, str]
    count: int
    row_of: NDArray[np.int64]
    rows: NDArray[np.int64]
    num_targets: NDArray[np.int64]
    num_nodes: NDArray[np.int64]
    vectors: Vectors

    def by_molecule(self, rows: NDArray[Any], sizes: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Rows, `sizes` [G] of each molecule that could be read, divided among all molecules; none for the others."""
        of_all = np.zeros(self.count, dtype=np.int64)
        of_all[self.rows] = sizes
        return np.split(rows, np.cumsum(of_all)[:-1])


@dataclass(frozen=True)
class Embeddings:
    """Vectors of molecules: ``graph`` [M, d], and for each molecule ``atoms`` [n, d] and ``positions`` [n, k].

    A molecule that could not be read has a row of NaN and no atoms. ``positions`` is empty where the network has none.
    """

    graph: NDArray[np.float32]
    atoms: list[NDArray[np.float32]]
    positions: list[NDArray[np.float32]]
