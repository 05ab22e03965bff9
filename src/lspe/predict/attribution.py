r"""Which atoms and bonds push what a network says: integrated gradients over its embedded inputs.

On the straight line from a baseline :math:`z'` to the embedded inputs :math:`z` of a molecule,

.. math::
    a_i = (z_i - z'_i) \int_0^1 \frac{\partial f(z' + \alpha (z - z'))}{\partial z_i} d\alpha, \qquad
    \sum_i a_i = f(z) - f(z'),

where :math:`f` gives values in original units, or probabilities. The baseline is a molecule of which nothing is known:
atoms, bonds and positions embedded as zero, and the mean of all descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.data import PackedGraphs
from lspe.data.packed.tensors import GraphTensors
from lspe.nn.network import Embedded
from lspe.nn.topology import Topology
from lspe.predict.member import Member

Floats = NDArray[np.float64]

TOLERANCE = 0.01
"""The part of f(z) − f(z') that may be missing from the sum."""

_INTERVALS = 8
_ROUNDS = 8
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_MOST_AT_ONCE = 96
_MOST_NODE_PAIRS = 2**18


@dataclass(frozen=True)
class Attribution:
    """What each input adds to the K outputs, from the baseline on: f(z) = baseline + all others together.

    ``baseline`` [K], ``nodes`` [n, K] and ``positions`` [n, K] of each atom, ``edges`` [m, K] as they are in the graph
    (each bond twice), ``descriptors`` [K], and ``rest`` [K], what the steps of the integral missed.
    """

    baseline: Floats
    nodes: Floats
    positions: Floats
    edges: Floats
    descriptors: Floats
    rest: Floats


def attribute(member: Member, graph: PackedGraphs) -> Attribution:
    """The attributions of a single graph.

    The line is cut into pieces, and the sum over each is compared with the difference of f between its ends; pieces
    where the two differ, for a ReLU bends within, are cut in two until the whole is within :data:`TOLERANCE`.
    """
    line = _Line.of(member, graph, np.array([0.0, 1.0]))
    with torch.no_grad():
        start, end = line.values(line.points()).cpu().numpy()
    allowed = TOLERANCE * np.abs(end - start) + 1e-6 * np.abs(end)
    cuts = np.linspace(0, 1, _INTERVALS + 1)
    pieces = _integrate(member, graph, np.stack([cuts[:-1], cuts[1:]], axis=1))
    for _ in range(_ROUNDS):
        if (np.abs(_missed(pieces)) <= allowed / 2).all():
            break
        bad = [piece for piece in pieces if (np.abs(piece.missed) > allowed / len(pieces) / 2).any()]
        halves = [half for piece in bad for half in _halves(piece.begin, piece.end)]
        pieces = [piece for piece in pieces if piece not in bad] + _integrate(member, graph, np.array(halves))
    sums = {name: np.sum([piece.sums[name] for piece in pieces], axis=0) for name in pieces[0].sums}
    none = np.zeros((int(graph.num_nodes[0]), len(start)))
    descriptors = sums["descriptors"][0] if "descriptors" in sums else np.zeros(len(start))
    return Attribution(start, sums["h"], sums.get("p", none), sums["e"], descriptors, _missed(pieces))


@dataclass(frozen=True, eq=False)
class _Piece:
    """A piece of the line: [rows, K] of each of the embedded inputs, and the part [K] of f's change they miss."""

    begin: float
    end: float
    sums: dict[str, Floats]
    missed: Floats


def _missed(pieces: list[_Piece]) -> Floats:
    return np.sum([piece.missed for piece in pieces], axis=0)


def _halves(begin: float, end: float) -> list[tuple[float, float]]:
    middle = (begin + end) / 2
    return [(begin, middle), (middle, end)]


def _integrate(member: Member, graph: PackedGraphs, intervals: Floats) -> list[_Piece]:
    """A Gauss-Legendre rule for each of some intervals [I, 2]."""
    copies = len(_POINTS) + 2
    most = min(_MOST_AT_ONCE, _MOST_NODE_PAIRS // int(graph.num_nodes[0]) ** 2)
    at_once = max(1, most // copies)
    pieces = []
    for first in range(0, len(intervals), at_once):
        some = intervals[first : first + at_once]
        half = (some[:, 1:] - some[:, :1]) / 2
        alpha = np.concatenate([some[:, :1], some.mean(axis=1, keepdims=True) + half * _POINTS, some[:, 1:]], axis=1)
        weights = np.concatenate([0 * half, half * _WEIGHTS, 0 * half], axis=1)
        values, products = _Line.of(member, graph, alpha.reshape(-1)).gradients()
        for number, (begin, end) in enumerate(some.tolist()):
            own = slice(number * copies, (number + 1) * copies)
            sums = {name: np.tensordot(weights[number], one[own], axes=1) for name, one in products.items()}
            total = sum(one.sum(axis=0) for one in sums.values())
            pieces.append(_Piece(begin, end, sums, values[own][-1] - values[own][0] - total))
    return pieces


@dataclass(frozen=True)
class _Line:
    """Copies of a graph, each at another point of the line from the baseline (alpha 0) to the graph (alpha 1)."""

    member: Member
    batch: GraphTensors
    topology: Topology
    alpha: Tensor
    start: dict[str, Tensor]
    way: dict[str, Tensor]

    @classmethod
    @torch.no_grad()
    def of(cls, member: Member, graph: PackedGraphs, alpha: Floats) -> _Line:
        network = member.network
        batch = graph.tensors(np.zeros(len(alpha), dtype=np.int64)).to(next(network.parameters()).device)
        topology = Topology.of(batch)
        end = {name: one for name, one in network.embed(batch, topology)._asdict().items() if one is not None}
        start = {name: torch.zeros_like(one) for name, one in end.items()}
        if network.descriptors is not None:  # one that is not defined counts as the mean
            start["descriptors"] = network.descriptors(torch.full_like(batch.descriptors, torch.nan))
        way = {name: end[name] - start[name] for name in end}
        return cls(member, batch, topology, torch.from_numpy(alpha).to(end["h"]), start, way)

    def points(self) -> dict[str, Tensor]:
        """The embedded inputs of each copy."""
        of_nodes = self.alpha[self.topology.batch]
        of_edges = of_nodes[self.topology.edge_index[1]]
        share = {"h": of_nodes, "p": of_nodes, "e": of_edges, "descriptors": self.alpha}
        return {name: self.start[name] + share[name][:, None] * way for name, way in self.way.items()}

    def values(self, points: dict[str, Tensor]) -> Tensor:
        """[copies, K] in original units, or probabilities."""
        inputs = Embedded(**{name: points.get(name) for name in Embedded._fields})  # type: ignore[arg-type]
        output = self.member.network.run_from(inputs, self.batch, self.topology).output
        return self.member.objective.predict(output.double())

    def gradients(self) -> tuple[Floats, dict[str, Floats]]:
        """The values [copies, K], and what each row of inputs adds to their slope along the line, [copies, rows, K]."""
        points = {name: one.requires_grad_() for name, one in self.points().items()}
        with torch.enable_grad():
            values = self.values(points)
            total = values.sum(dim=0)  # copies do not know of each other
        columns: dict[str, list[Floats]] = {name: [] for name in points}
        for output in total:
            gradients = torch.autograd.grad(
                output, [*points.values()], retain_graph=True, allow_unused=True, materialize_grads=True
            )
            for (name, way), gradient in zip(self.way.items(), gradients, strict=True):
                slopes = (gradient * way).sum(dim=-1, dtype=torch.float64)
                columns[name].append(slopes.view(len(values), -1).cpu().numpy())
        return values.detach().cpu().numpy(), {name: np.stack(one, axis=2) for name, one in columns.items()}
