"""The small graphs on which the paper shows what random walks tell apart and 1-WL does not, ready to be drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import cos, pi, sin
from typing import Any

import networkx as nx

from lspe.plots.drawable_graphs import Sketch, sketch_graph

DECALIN = "C1CCC2CCCCC2C1"
BICYCLOPENTYL = "C1CCC(C1)C1CCCC1"


@dataclass(frozen=True)
class Example:
    """A graph that is no molecule, and how it is drawn."""

    name: str
    title: str
    build: Callable[[], Sketch]

    @cache  # noqa: B019 (there are only the few of this file)
    def sketch(self) -> Sketch:
        """The graph, ready to be drawn."""
        return self.build()


def three_regular() -> Sketch:
    """A 3-regular graph on eight nodes of three kinds: {0, 1, 4, 5}, {2, 7} and {3, 6}."""
    edges = [(0, 1), (0, 6), (0, 7), (1, 3), (1, 7), (2, 4), (2, 5), (2, 7), (3, 4), (3, 6), (4, 5), (5, 6)]
    left, top = 1.0, 0.75
    places = {
        7: (-2 * left, 0), 0: (-left, -top), 1: (-left, top), 6: (0, -1.55 * top),
        3: (0, 1.55 * top), 4: (left, top), 5: (left, -top), 2: (2 * left, 0),
    }  # fmt: skip
    return sketch_graph(nx.Graph(edges), places)


def skip_link(nodes: int, skip: int) -> Sketch:
    """CSL(nodes, skip): a ring whose nodes are joined to the one `skip` further on, too."""
    return sketch_graph(nx.circulant_graph(nodes, [1, skip]), _circle(range(nodes)))


def rook() -> Sketch:
    """The squares of a 4 × 4 board, joined where a rook can go from one to the other."""
    board = list(product(range(4), repeat=2))
    graph = nx.Graph(
        (a, b) for a in board for b in board if a < b and (a[0] == b[0] or a[1] == b[1])
    )  # 16 nodes, each with six neighbours
    return _numbered_on_circle(graph)


def shrikhande() -> Sketch:
    """Shrikhande's graph: as strongly regular as the rook's, and another graph."""
    steps = [(0, 1), (1, 0), (1, 1)]
    graph = nx.Graph(((a, b), ((a + i) % 4, (b + j) % 4)) for a, b in product(range(4), repeat=2) for i, j in steps)
    return _numbered_on_circle(graph)


def _numbered_on_circle(graph: Any) -> Sketch:
    numbered = nx.empty_graph(len(graph))
    numbered.add_edges_from(nx.convert_node_labels_to_integers(graph, ordering="sorted").edges)
    return sketch_graph(numbered, _circle(range(len(graph))))


def _circle(nodes: range) -> dict[int, tuple[float, float]]:
    angle = 2 * pi / len(nodes)
    return {node: (sin(node * angle), cos(node * angle)) for node in nodes}


EXAMPLES: dict[str, Example] = {
    example.name: example
    for example in (
        Example("three-regular", "3-regular graph", three_regular),
        Example("csl-11-2", "CSL(11, 2)", lambda: skip_link(11, 2)),
        Example("csl-11-3", "CSL(11, 3)", lambda: skip_link(11, 3)),
        Example("rook", "Rook's graph 4 × 4", rook),
        Example("shrikhande", "Shrikhande graph", shrikhande),
    )
}
