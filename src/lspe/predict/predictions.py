"""What comes out of predicting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lspe.data import PackedGraphs
from lspe.data.molecules.conversion import MoleculeGraphs
from lspe.data.packed.links import LinkGraphs
from lspe.data.words import Level
from lspe.predict.intervals import Intervals, mean_and_spread, spread_of_one_network
from lspe.predict.member import Vectors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """What the networks say of some molecules.

    - `mean` [M, outputs]: values in original units, or probabilities; NaN where there is a reason. Where nodes or
      edges are predicted, a row for each of them in the molecules that could be read.
    - `sd`, of the same shape: the standard deviation over networks and kinds of trees, weighted as they are; ``None``
      of a single network.
    - `half_widths`, of the same shape: of the intervals that hold 90 % of the true values; ``None`` where there are
      none.
    - `reasons`: why the molecule in this row has no value.
    - `count`: M, of all molecules.
    - `row_of` [R]: the molecule each row of `mean` belongs to.
    - `rows` [G], `num_targets` [G], `num_nodes` [G], `vectors`: the molecules that could be read, how many predictions
      each has, their atoms, and what the first network makes of them.
    """

    mean: Floats
    sd: Floats | None
    half_widths: Floats | None
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


def combined(
    values: Floats,
    weights: Floats,
    networks: int,
    molecules: MoleculeGraphs,
    level: Level,
    vectors: Vectors,
    calibrated: Callable[[Floats], Floats],
    intervals: Intervals | None,
) -> Predictions:
    """What networks, the first ones, and trees say together, each ``values[n]`` [R, outputs] with its weight."""
    overflow = ~np.isfinite(values).all(axis=(0, 2))
    values[:, overflow] = np.nan
    graphs = molecules.graphs
    num_targets = _targets_of(graphs, level)
    row_of = molecules.rows.repeat(num_targets)
    if level == "edge":
        values = values[:, np.argsort(_given_places(graphs))]
    reasons = dict(molecules.reasons)
    for row in row_of[overflow].tolist():
        reasons[row] = "makes the network overflow: its output is not a number"
    mean, sd = mean_and_spread(values, weights)
    mean = calibrated(mean)
    half = None if intervals is None else intervals.half_widths(spread_of_one_network(values, weights, networks))
    if level == "graph":
        mean, sd = _in_rows(mean, row_of, molecules.count), _in_rows(sd, row_of, molecules.count)
        half = None if half is None else _in_rows(half, row_of, molecules.count)
        row_of = np.arange(molecules.count)
    return Predictions(
        mean,
        sd if len(weights) > 1 else None,
        half,
        reasons,
        molecules.count,
        row_of,
        molecules.rows,
        num_targets,
        graphs.num_nodes,
        vectors,
    )


def _in_rows(values: Floats, rows: NDArray[np.int64], count: int) -> Floats:
    """``values`` in some of `count` rows, NaN in the others."""
    everything = np.full((count, values.shape[1]), np.nan)
    everything[rows] = values
    return everything


def _targets_of(graphs: PackedGraphs, level: Level) -> NDArray[np.int64]:
    """How many predictions each graph has."""
    if isinstance(graphs, LinkGraphs):
        return graphs.num_pairs
    if level == "graph":
        return np.ones(len(graphs), dtype=np.int64)
    return graphs.num_nodes if level == "node" else graphs.num_edges


def _given_places(graphs: PackedGraphs) -> NDArray[np.int64]:
    """Where each edge of a packed set stood among those of all graphs before they were packed."""
    return graphs.edge["given_place"] + graphs.edge_ptr[:-1].repeat(graphs.num_edges)
