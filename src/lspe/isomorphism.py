"""Two tests that can show that graphs are not isomorphic: Algorithm 1 of the paper, and 1-WL beside it.

Neither can prove that two graphs are isomorphic. The random walk test tells apart pairs that 1-WL cannot, such as
decalin and bicyclopentyl.
"""

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

_PRIMES = (2**31 - 1, 2**31 - 19)


@dataclass(frozen=True)
class Comparison:
    """What a test says of two graphs.

    Attributes:
        verdict: "non-isomorphic" is certain; "possibly isomorphic" means that the test cannot tell them apart.
        step: The step (of the walk, or of the colour refinement) at which the graphs first differ, ``None`` if they
            never do. At step 0 they differ before the test begins: in the number of nodes or edges, or in the labels.

    """

    verdict: Literal["non-isomorphic", "possibly isomorphic"]
    step: int | None


def random_walk_test(g1: Any, g2: Any, *, label: str | None = None, max_steps: int | None = None) -> Comparison:
    r"""Compare the multisets of random walk encodings of two graphs, a step more at a time (Algorithm 1)

    .. math::
        \{\{\, [\textrm{RW}_{uu}, \dots, \textrm{RW}^k_{uu}] \mid u \in \mathcal{V}_1 \,\}\} \neq
        \{\{\, [\textrm{RW}_{vv}, \dots, \textrm{RW}^k_{vv}] \mid v \in \mathcal{V}_2 \,\}\}
        \quad \textrm{for } k = 1, 2, \dots, n

    It stops at k = n: the traces of the first n powers fix the characteristic polynomial, and with it every later step.

    Nothing is rounded. The probabilities are fractions, and they are computed modulo two primes near :math:`2^{31}`,
    in which each degree has an inverse. Equal fractions stay equal, so the verdict "non-isomorphic" is certain;
    different ones collide with a probability of about :math:`2^{-62}`.

    Args:
        g1: A PyG ``Data``, a networkx graph or a SMILES string. Only its structure counts, parallel edges
            included; weights and features do not.
        g2: The other graph.
        label: Also tell nodes apart by this attribute of ``Data`` or networkx nodes; ``"element"`` for SMILES.
        max_steps: Stop after so many steps. One step takes time :math:`O(n \cdot |E| + n^2)` and the test memory
            :math:`O(n^2)`.

    """
    if max_steps is not None and max_steps < 1:
        raise ValueError(f"max_steps must be at least 1, got {max_steps}")
    first, second = _read(g1, label), _read(g2, label)
    if _differ_before_the_start(first, second):
        return Comparison("non-isomorphic", 0)
    n = len(first.labels)
    steps = n if max_steps is None else min(n, max_steps)
    kinds = np.array(_numbered([*first.labels, *second.labels]), dtype=np.int64)
    walks = zip(*(_return_probabilities(graph.adjacency, p) for graph in (first, second) for p in _PRIMES), strict=True)
    for step, (c_1, c_2, d_1, d_2) in zip(range(1, steps + 1), walks, strict=False):
        rows = np.column_stack([kinds, np.concatenate([c_1, d_1]), np.concatenate([c_2, d_2])])
        kinds = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        if _differ(kinds):
            return Comparison("non-isomorphic", step)
    return Comparison("possibly isomorphic", None)


def weisfeiler_lehman_test(g1: Any, g2: Any, *, label: str | None = None) -> Comparison:
    r"""Compare two graphs by colour refinement (1-WL)

    .. math::
        c_u^{(t)} = \textrm{Hash}\big(c_u^{(t-1)}, \{\{\, c_v^{(t-1)} \mid v \in \mathcal{N}_u \,\}\}\big)

    until the colours split no further. In directed graphs the nodes before and the nodes after u are two multisets.

    Args:
        g1: A PyG ``Data``, a networkx graph or a SMILES string. Only its structure counts, parallel edges
            included; weights and features do not.
        g2: The other graph.
        label: Begin with this attribute of ``Data`` or networkx nodes as colour; ``"element"`` for SMILES.

    """
    first, second = _read(g1, label), _read(g2, label)
    if _differ_before_the_start(first, second):
        return Comparison("non-isomorphic", 0)
    both = scipy.sparse.block_diag([first.adjacency, second.adjacency], format="csr")
    after, before = _neighbours(both), _neighbours(both.T.tocsr())
    colours = _numbered([*first.labels, *second.labels])
    for step in itertools.count(1):
        refined = _numbered(
            (colour, tuple(sorted(colours[v] for v in out)), tuple(sorted(colours[v] for v in into)))
            for colour, out, into in zip(colours, after, before, strict=True)
        )
        if _differ(refined):
            return Comparison("non-isomorphic", step)
        if len(set(refined)) == len(set(colours)):
            break
        colours = refined
    return Comparison("possibly isomorphic", None)


def in_words(walk: Comparison, refinement: Comparison) -> str:
    """What the random walk test and 1-WL say of two graphs, in a sentence."""
    if walk.step == 0:
        return "They are different before any step is taken: in the number of nodes or edges, or in their labels."
    if walk.step is None and refinement.step is None:
        return "Neither test tells them apart: they may be the same graph, or not."
    walks = "never" if walk.step is None else f"from step {walk.step} on"
    colours = "never" if refinement.step is None else f"from step {refinement.step} on"
    return f"They are different: random walks tell them apart {walks}, 1-WL {colours}."


def compare_encodings(
    g1: Any, g2: Any, *, k: int = 16, label: str | None = None, kinds: Iterable[str] | None = None
) -> dict[str, int | None]:
    """For each kind of encoding the first column at which it tells two graphs apart, ``None`` if it does not.

    Unlike the two tests it compares numbers up to rounding (:func:`lspe.encodings.tell_apart.first_difference`). Kinds
    that the graphs are too large for are left out.

    Args:
        g1: A PyG ``Data``, a networkx graph or a SMILES string. Only its structure counts, parallel edges
            included; weights and features do not.
        g2: The other graph.
        k: Number of columns to compare.
        label: Also tell nodes apart by this attribute of ``Data`` or networkx nodes; ``"element"`` for SMILES.
        kinds: Some kinds of encoding; all of lspe's own if left out.

    """
    import torch

    from lspe.encodings.dense import TooLargeError
    from lspe.encodings.kinds import KINDS
    from lspe.encodings.tell_apart import LabelledGraph, first_difference

    structures = [_read(graph, label) for graph in (g1, g2)]
    numbers = _numbered([label for one in structures for label in one.labels])
    graphs = []
    for one in structures:
        edges = one.adjacency.tocoo()
        ends = np.repeat(np.stack(edges.coords), edges.data, axis=1)
        of_nodes, numbers = numbers[: len(one.labels)], numbers[len(one.labels) :]
        graphs.append(LabelledGraph(torch.from_numpy(ends.astype(np.int64)), torch.tensor(of_nodes)))
    found: dict[str, int | None] = {}
    for kind in kinds or KINDS:
        with suppress(TooLargeError):
            found[kind] = first_difference(kind, graphs[0], graphs[1], k)
    return found


@dataclass(frozen=True)
class NodeKinds:
    r"""The kinds of nodes that k steps of the random walk tell apart in several graphs, counted through all of them.

    Shapes:
        - **kinds:** for each graph :math:`[n]`
        - **vectors:** :math:`[\textrm{number of kinds}, k]`, the random walk encoding of each kind
    """

    kinds: tuple[NDArray[np.int64], ...]
    vectors: NDArray[np.float64]

    def counts(self, graph: int) -> NDArray[np.int64]:
        """How many nodes of each kind a graph has, :math:`[number of kinds]`."""
        return np.bincount(self.kinds[graph], minlength=len(self.vectors))


def node_kinds(graphs: Sequence[Any], k: int) -> NodeKinds:
    """The kinds of nodes of some graphs (anything with ``edge_index`` and ``num_nodes``) after k steps."""
    import torch

    from lspe.encodings import kinds_by_column, random_walk_encoding

    encoding = torch.cat(
        [random_walk_encoding(one.edge_index, one.num_nodes, k, dtype=torch.float64) for one in graphs]
    )
    kind = kinds_by_column(encoding)[-1].numpy()
    vectors = np.empty((int(kind.max()) + 1, k))
    vectors[kind] = encoding.numpy()
    ends = np.cumsum([one.num_nodes for one in graphs])[:-1]
    return NodeKinds(tuple(np.split(kind, ends)), vectors)


class _Structure(NamedTuple):
    """What counts of a graph: how many edges lead from node to node, and the labels of the nodes."""

    adjacency: scipy.sparse.csr_array
    labels: Sequence[Hashable]


def _read(graph: Any, label: str | None) -> _Structure:
    if isinstance(graph, str):
        structure = _read_smiles(graph, label)
    elif hasattr(graph, "edge_index"):
        structure = _read_data(graph, label)
    elif hasattr(graph, "adj") and hasattr(graph, "is_directed"):
        structure = _read_networkx(graph, label)
    else:
        raise TypeError(f"a graph must be a PyG Data, a networkx graph or a SMILES string, not {type(graph)}")
    if not structure.labels:
        raise ValueError(f"a graph needs at least one node, {graph!r} has none")
    return structure


def _read_smiles(smiles: str, label: str | None) -> _Structure:
    from rdkit import Chem, rdBase

    if label not in (None, "element"):
        raise ValueError(f"the label of a SMILES string can only be 'element', not {label!r}")
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"RDKit cannot read the SMILES {smiles!r}: check brackets, ring numbers and valences")
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    labels = [None if label is None else atom.GetSymbol() for atom in molecule.GetAtoms()]
    return _Structure(_adjacency([*bonds, *((j, i) for i, j in bonds)], len(labels)), labels)


def _read_data(data: Any, label: str | None) -> _Structure:
    from lspe.encodings.graphs import check_graphs

    graph = check_graphs(data.edge_index, data.num_nodes)
    if label is None:
        labels: list[Hashable] = [None] * graph.num_nodes
    elif label in data:
        labels = [tuple(row) for row in data[label].reshape(graph.num_nodes, -1).tolist()]
    else:
        raise ValueError(f"the graph has no attribute {label!r} to take node labels from, only {data.keys()}")
    return _Structure(graph.sparse_adjacency(0).astype(np.int64), labels)


def _read_networkx(graph: Any, label: str | None) -> _Structure:
    place = {node: i for i, node in enumerate(graph)}
    edges = [(place[i], place[j]) for i, j in graph.edges()]
    if not graph.is_directed():
        edges += [(j, i) for i, j in edges if i != j]
    missing = [node for node, given in graph.nodes(data=True) if label is not None and label not in given]
    if missing:
        raise ValueError(f"node {missing[0]!r} has no attribute {label!r} to take its label from")
    labels = [None if label is None else given[label] for _, given in graph.nodes(data=True)]
    return _Structure(_adjacency(edges, len(labels)), labels)


def _adjacency(edges: Sequence[tuple[int, int]], n: int) -> scipy.sparse.csr_array:
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return scipy.sparse.coo_array((np.ones_like(source), (source, target)), shape=(n, n)).tocsr()


def _differ_before_the_start(first: _Structure, second: _Structure) -> bool:
    return Counter(first.labels) != Counter(second.labels) or first.adjacency.sum() != second.adjacency.sum()


def _numbered(values: Iterable[Hashable]) -> list[int]:
    """The same number from 0 on for equal values."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _differ(kinds: Sequence[int] | NDArray[np.int64]) -> bool:
    """Whether the first half, the nodes of one graph, and the second half hold the kinds differently often."""
    first, second = np.split(np.asarray(kinds), 2)
    return not np.array_equal(np.sort(first), np.sort(second))


def _return_probabilities(adjacency: scipy.sparse.csr_array, prime: int) -> Iterator[NDArray[np.int64]]:
    """The diagonals of RW, RW², … modulo a prime: [n] each, without end."""
    degree = adjacency.sum(1)
    inverse = np.array([pow(int(d), -1, prime) if d else 0 for d in degree], dtype=np.int64)[:, None]
    power = np.eye(degree.size, dtype=np.int64)
    while True:
        power = (adjacency @ power) % prime * inverse % prime
        yield power.diagonal()


def _neighbours(adjacency: scipy.sparse.csr_array) -> list[list[int]]:
    """For each node the nodes its edges lead to, as often as they do."""
    ends = np.repeat(adjacency.indices, adjacency.data)
    return [part.tolist() for part in np.split(ends, adjacency.sum(1).cumsum()[:-1])]
