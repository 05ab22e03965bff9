"""The answers of the explorer: graphs with their encodings, and what tells two graphs apart."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lspe.encodings import KINDS, EncodingKind, encode, encode_pairs, find_kind, kinds_by_column
from lspe.errors import UserError
from lspe.explore.drawing import Drawn, read_graph
from lspe.explore.schema import (
    ComparedGraphs,
    CompareQuery,
    EncodedGraph,
    EncodeQuery,
    ExampleGraph,
    Kind,
    Verdict,
)
from lspe.isomorphism import compare_encodings, in_words, random_walk_test, weisfeiler_lehman_test
from lspe.plots.drawable_graphs import Sketch
from lspe.plots.examples import BICYCLOPENTYL, DECALIN, EXAMPLES

_FULLERENE = (
    "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5"
    "c1c1c6c2c3c41"
)
SHOWN_EXAMPLES = [
    ExampleGraph(title="Caffeine", first="Cn1cnc2c1c(=O)n(C)c(=O)n2C", about="Every atom has an encoding of its own."),
    ExampleGraph(title="Ibuprofen", first="CC(C)Cc1ccc(cc1)C(C)C(=O)O", about="Symmetric atoms share an encoding."),
    ExampleGraph(title="C₆₀", first=_FULLERENE, about="Sixty atoms, all alike: one encoding."),
    ExampleGraph(title="3-regular graph", first="three-regular", about="Same degrees, yet three kinds of nodes."),
    ExampleGraph(
        title="Decalin · bicyclopentyl", first=DECALIN, second=BICYCLOPENTYL,
        about="Random walks tell them apart, 1-WL does not.",
    ),
    ExampleGraph(
        title="CSL(11, 2) · CSL(11, 3)", first="csl-11-2", second="csl-11-3",
        about="All nodes of each graph alike, yet the graphs differ.",
    ),
    ExampleGraph(
        title="Rook · Shrikhande", first="rook", second="shrikhande",
        about="Two different graphs that neither test can tell apart.",
    ),
]  # fmt: skip


def kinds() -> list[Kind]:
    """Every kind of encoding."""
    return [
        Kind(
            name=kind.name,
            title=kind.title,
            columns=kind.columns,
            level=kind.level,
            comparable=_is_comparable(kind),
            equation=kind.equation,
        )
        for kind in map(find_kind, KINDS)
    ]


def encode_graph(query: EncodeQuery) -> EncodedGraph:
    """A graph with its encoding; with that of the pairs of one node where it is one of pairs."""
    drawn = read_graph(query.graph)
    sketch = drawn.sketch
    if query.origin >= sketch.num_nodes:
        raise UserError(f"origin: the graph has no node {query.origin}; its {sketch.num_nodes} are numbered from 0")
    encoding = _encoding(sketch, query.encoding, query.k, query.origin)
    return _answer(query.graph, drawn, encoding, kinds_by_column(encoding).tolist())


def compare_graphs(query: CompareQuery) -> ComparedGraphs:
    """Two graphs with their encodings, kinds counted through both, the verdicts of both tests, and which encodings
    tell them apart.
    """
    texts = query.first, query.second
    drawn = [read_graph(text) for text in texts]
    sketches = [one.sketch for one in drawn]
    if query.elements and not all(sketch.is_molecule for sketch in sketches):
        raise UserError("only molecules have elements; leave them out to compare other graphs")
    if not _is_comparable(find_kind(query.encoding)):
        raise UserError(f"two graphs cannot be shown side by side by {query.encoding!r}: choose another encoding")
    encodings = [_encoding(sketch, query.encoding, query.k) for sketch in sketches]
    kinds = kinds_by_column(torch.cat(encodings)).numpy()
    split = sketches[0].num_nodes
    first, second = (
        _answer(text, one, encoding, part.tolist())
        for text, one, encoding, part in zip(texts, drawn, encodings, (kinds[:, :split], kinds[:, split:]), strict=True)
    )
    graphs = [sketch.to_networkx() for sketch in sketches]
    label = "element" if query.elements else None
    walk = random_walk_test(*graphs, label=label)
    refinement = weisfeiler_lehman_test(*graphs, label=label)
    return ComparedGraphs(
        first=first,
        second=second,
        random_walk=Verdict(verdict=walk.verdict, step=walk.step),
        weisfeiler_lehman=Verdict(verdict=refinement.verdict, step=refinement.step),
        encodings=compare_encodings(*graphs, k=query.k, label=label),
        summary=in_words(walk, refinement),
    )


def _encoding(sketch: Sketch, name: str, k: int, origin: int = 0) -> Tensor:
    """``[n, k]``: of each node, or of each pair of ``origin`` and a node."""
    kind, n = find_kind(name), sketch.num_nodes
    k = kind.width or k
    if kind.level == "node":
        return encode(kind, sketch.edge_index, n, k, dtype=torch.float64)
    pairs = torch.stack([torch.full((n,), origin), torch.arange(n)])
    return encode_pairs(kind, sketch.edge_index, n, k, pairs=pairs, dtype=torch.float64)


def _is_comparable(kind: EncodingKind) -> bool:
    """Whether equal nodes of two graphs have equal encodings: not of pairs, nor where they depend on a choice."""
    return kind.level == "node" and kind.comparable is None


def _answer(text: str, drawn: Drawn, encoding: Tensor, kinds: Sequence[Sequence[int]]) -> EncodedGraph:
    name = text.strip()
    return EncodedGraph(
        title=EXAMPLES[name].title if name in EXAMPLES else name,
        is_molecule=drawn.sketch.is_molecule,
        **drawn.parts(),
        encoding=[[round(value, 6) for value in row] for row in encoding.tolist()],
        kinds=[list(row) for row in kinds],
    )
