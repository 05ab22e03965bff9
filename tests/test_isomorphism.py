import itertools
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx.generators.atlas import graph_atlas_g
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from lspe.encodings import KINDS
from lspe.isomorphism import (
    Comparison,
    compare_encodings,
    in_words,
    node_kinds,
    random_walk_test,
    weisfeiler_lehman_test,
)
from lspe.plots.examples import BICYCLOPENTYL, DECALIN, EXAMPLES
from tests.encodings.telling import PAIRS
from tests.graphs import CSL_SKIPS, bicyclopentyl, csl, decalin, from_networkx, permuted, random_graphs

POSSIBLY = Comparison("possibly isomorphic", None)


def different(step: int) -> Comparison:
    return Comparison("non-isomorphic", step)


def exact_encodings(graph: nx.Graph, k: int) -> list[tuple[Fraction, ...]]:
    """The random walk encoding of each node by definition, in fractions."""
    nodes = list(graph)
    walk = [[Fraction(graph.number_of_edges(i, j), max(1, graph.degree(i))) for j in nodes] for i in nodes]
    columns = list(zip(*walk, strict=True))
    power, diagonals = walk, []
    for _ in range(k):
        diagonals.append([power[i][i] for i in range(len(nodes))])
        power = [[sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in power]
    return list(zip(*diagonals, strict=True))


@pytest.mark.parametrize("pair", [(decalin(), bicyclopentyl()), ("C1CCC2CCCCC2C1", "C1CCCC1C1CCCC1")])
def test_decalin_and_bicyclopentyl(pair):
    assert random_walk_test(*pair) == different(5)
    assert weisfeiler_lehman_test(*pair) == POSSIBLY


def test_csl_graphs_of_eleven_nodes():
    assert random_walk_test(csl(11, 2), csl(11, 3)) == different(3)
    assert weisfeiler_lehman_test(csl(11, 2), csl(11, 3)) == POSSIBLY


def test_the_ten_csl_classes():
    for first, second in itertools.combinations(CSL_SKIPS, 2):
        comparison = random_walk_test(csl(41, first), csl(41, second))
        assert comparison.verdict == "non-isomorphic"
        assert comparison.step <= 20
        assert weisfeiler_lehman_test(csl(41, first), csl(41, second)) == POSSIBLY
    for skip in CSL_SKIPS:
        copy = permuted(csl(41, skip), torch.randperm(41, generator=torch.Generator().manual_seed(skip)))
        assert random_walk_test(csl(41, skip), copy) == POSSIBLY


def test_graphs_that_no_walk_tells_apart():
    """The rook's graph and the Shrikhande graph are strongly regular with the same parameters (16, 6, 2, 2)."""
    rook = nx.line_graph(nx.complete_bipartite_graph(4, 4))
    shrikhande = nx.Graph(
        ((i, j), ((i + a) % 4, (j + b) % 4)) for i in range(4) for j in range(4) for a, b in ((1, 0), (0, 1), (1, 1))
    )
    assert not nx.is_isomorphic(rook, shrikhande)
    assert random_walk_test(rook, shrikhande) == POSSIBLY
    assert weisfeiler_lehman_test(rook, shrikhande) == POSSIBLY


@pytest.mark.parametrize("degree", [3, 4, 7])
def test_rounding_never_parts_copies_of_a_large_regular_graph(degree):
    graph = from_networkx(nx.random_regular_graph(degree, 120, seed=degree))
    copy = permuted(graph, torch.randperm(120, generator=torch.Generator().manual_seed(degree)))
    assert random_walk_test(graph, copy) == POSSIBLY


def test_a_difference_far_below_single_precision_is_seen():
    """A ladder closed to a ring and one closed with a twist differ only in the walks around all of it."""
    rungs = 33
    ring = nx.circular_ladder_graph(rungs)
    twisted = nx.Graph(ring)
    twisted.remove_edges_from([(0, rungs - 1), (rungs, 2 * rungs - 1)])
    twisted.add_edges_from([(0, 2 * rungs - 1), (rungs, rungs - 1)])
    walks = [nx.to_numpy_array(graph, nodelist=sorted(ring), dtype=np.int64) for graph in (ring, twisted)]
    returning = ([np.linalg.matrix_power(walk, step)[0, 0] for walk in walks] for step in range(1, 36))
    step, (first, second) = next((i, pair) for i, pair in enumerate(returning, start=1) if pair[0] != pair[1])
    assert 0 < abs(first - second) / 3**step < 1e-12
    assert random_walk_test(ring, twisted) == different(step)


def test_every_graph_of_up_to_six_nodes_against_fractions():
    """The step is that of the exact multisets, also looking beyond k = n."""
    graphs = [g for g in graph_atlas_g() if 1 <= g.number_of_nodes() <= 6]
    sizes = {g: (g.number_of_nodes(), g.number_of_edges()) for g in graphs}
    encodings = {g: exact_encodings(g, 2 * g.number_of_nodes()) for g in graphs}
    pairs = [(g, h) for g, h in itertools.combinations(graphs, 2) if sizes[g] == sizes[h]]
    assert len(pairs) > 1000
    for g, h in pairs[:: len(pairs) // 300]:
        steps = [
            k
            for k in range(1, 2 * len(g) + 1)
            if Counter(row[:k] for row in encodings[g]) != Counter(row[:k] for row in encodings[h])
        ]
        expected = different(steps[0]) if steps else POSSIBLY
        assert random_walk_test(g, h) == expected


@settings(max_examples=60, deadline=None)
@given(random_graphs(min_nodes=4, max_nodes=7), random_graphs(min_nodes=4, max_nodes=7))
def test_one_wl_agrees_with_networkx(first, second):
    graphs = []
    for data in (first, second):
        graphs.append(nx.empty_graph(data.num_nodes))
        graphs[-1].add_edges_from(data.edge_index.t().tolist())
        nx.set_node_attributes(graphs[-1], "node", "label")
    hashes = [nx.weisfeiler_lehman_graph_hash(g, node_attr="label", iterations=8) for g in graphs]
    sizes = [(g.number_of_nodes(), g.number_of_edges()) for g in graphs]
    comparison = weisfeiler_lehman_test(first, second)
    assert (comparison == POSSIBLY) == (hashes[0] == hashes[1] and sizes[0] == sizes[1])
    assert (comparison == different(0)) == (sizes[0] != sizes[1])


def test_one_wl_counts_its_steps():
    ends_differ = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (2, 6)])
    nearer = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 6)])
    assert sorted(d for _, d in ends_differ.degree) == sorted(d for _, d in nearer.degree)
    assert weisfeiler_lehman_test(ends_differ, nearer) == different(2)
    assert weisfeiler_lehman_test(nx.path_graph(5), nx.star_graph(4)) == different(1)


@settings(max_examples=60, deadline=None)
@given(
    random_graphs(max_nodes=9) | random_graphs(directed=True, self_loops=True, parallel_edges=True),
    st.integers(0, 10**6),
)
def test_copies_are_possibly_isomorphic(data, seed):
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    assert random_walk_test(data, permuted(data, order)) == POSSIBLY
    assert weisfeiler_lehman_test(data, permuted(data, order)) == POSSIBLY


def test_counts_of_nodes_and_edges_are_step_zero():
    for test in (random_walk_test, weisfeiler_lehman_test):
        assert test(nx.path_graph(4), nx.path_graph(5)) == different(0)
        assert test(nx.path_graph(4), nx.cycle_graph(4)) == different(0)
        assert test("C", "CC") == different(0)


def test_directions_parallel_edges_and_loops_count():
    cycle = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
    not_a_cycle = nx.DiGraph([(0, 1), (1, 2), (0, 2)])
    assert random_walk_test(cycle, not_a_cycle) == different(3)
    assert weisfeiler_lehman_test(cycle, not_a_cycle) == different(1)
    into, out_of = nx.DiGraph([(1, 0), (2, 0), (3, 0), (0, 4)]), nx.DiGraph([(0, 1), (0, 2), (0, 3), (4, 0)])
    assert weisfeiler_lehman_test(into, out_of) == different(1)
    double = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 3)])
    middle = nx.MultiGraph([(0, 1), (1, 2), (1, 2), (2, 3)])
    assert random_walk_test(double, middle) == different(2)
    assert weisfeiler_lehman_test(double, middle) == different(1)
    loop_at_end, loop_inside = nx.Graph([(0, 0), (0, 1), (1, 2)]), nx.Graph([(1, 1), (0, 1), (1, 2)])
    assert random_walk_test(loop_at_end, loop_inside) == different(1)


def test_kinds_of_input_are_the_same_graph():
    graph = nx.relabel_nodes(nx.Graph(decalin().edge_index.t().tolist()), lambda i: f"atom {i}")
    assert random_walk_test(graph, decalin()) == POSSIBLY
    assert random_walk_test("C1CCC2CCCCC2C1", graph) == POSSIBLY
    assert random_walk_test(bicyclopentyl(), graph) == different(5)


def test_labels_count_when_asked_for():
    for test in (random_walk_test, weisfeiler_lehman_test):
        assert test("CCO", "CCN") == POSSIBLY
        assert test("CCO", "CCN", label="element") == different(0)
        assert test("CCO", "COC") == POSSIBLY
    assert random_walk_test("CCO", "COC", label="element") == different(2)
    assert weisfeiler_lehman_test("CCO", "COC", label="element") == different(1)
    first, second = nx.path_graph(3), nx.path_graph(3)
    nx.set_node_attributes(first, {0: "a", 1: "b", 2: "a"}, "colour")
    nx.set_node_attributes(second, {0: "a", 1: "a", 2: "b"}, "colour")
    assert weisfeiler_lehman_test(first, second, label="colour") == different(1)
    data, other = decalin(), decalin()
    data.x, other.x = torch.eye(10)[:, :2], torch.zeros(10, 2)
    assert random_walk_test(data, other, label="x") == different(0)
    assert random_walk_test(data, data, label="x") == POSSIBLY


def test_fewer_steps_on_request():
    assert random_walk_test(decalin(), bicyclopentyl(), max_steps=4) == POSSIBLY
    assert random_walk_test(decalin(), bicyclopentyl(), max_steps=5) == different(5)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"RDKit cannot read the SMILES 'C1CC\('"):
        random_walk_test("C1CC(", "CC")
    with pytest.raises(ValueError, match="at least one node"):
        random_walk_test("", "")
    with pytest.raises(ValueError, match="can only be 'element'"):
        random_walk_test("C", "C", label="charge")
    with pytest.raises(ValueError, match="has no attribute 'charge'"):
        random_walk_test(decalin(), decalin(), label="charge")
    with pytest.raises(ValueError, match="node 0 has no attribute 'charge'"):
        weisfeiler_lehman_test(nx.path_graph(2), nx.path_graph(2), label="charge")
    with pytest.raises(ValueError, match=r"edge 0 \(0 → 5\) points outside the graph"):
        random_walk_test(Data(edge_index=torch.tensor([[0], [5]]), num_nodes=2), decalin())
    with pytest.raises(TypeError, match="must be a PyG Data, a networkx graph or a SMILES string"):
        weisfeiler_lehman_test(decalin(), 3)
    with pytest.raises(ValueError, match="max_steps must be at least 1"):
        random_walk_test("C", "C", max_steps=0)


def test_rdkit_is_only_imported_for_smiles():
    code = "import lspe.isomorphism, sys; assert not {'rdkit', 'networkx', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kinds_of_the_regular_graph_are_its_orbits() -> None:
    graph = EXAMPLES["three-regular"].sketch()
    found = node_kinds([graph], 4)
    names = np.array(graph.names)
    assert {frozenset(names[found.kinds[0] == kind]) for kind in range(3)} == {
        frozenset("0145"),
        frozenset("27"),
        frozenset("36"),
    }
    # RW^3_ii = (closed walks of three steps) / 27: one triangle in two directions for {2, 7} and {0, 1, 4, 5}
    assert np.allclose(np.sort(found.vectors[:, 2]), [0, 2 / 27, 2 / 27])
    assert np.allclose(found.vectors[:, 1], 1 / 3)


def test_pairs_share_no_kind_from_the_step_on_that_tells_them_apart() -> None:
    pair = [decalin(), bicyclopentyl()]
    before, after = node_kinds(pair, 4), node_kinds(pair, 5)
    assert (before.counts(0) == before.counts(1)).all()
    assert not ((after.counts(0) > 0) & (after.counts(1) > 0)).any()


def test_the_words_say_which_test_saw_what() -> None:
    def of(first: str, second: str) -> str:
        return in_words(random_walk_test(first, second), weisfeiler_lehman_test(first, second))

    assert of("CCO", "CCCO").startswith("They are different before any step")
    assert of("CCO", "CCN").startswith("Neither test")
    assert "apart from step 5 on, 1-WL never" in of(DECALIN, BICYCLOPENTYL)
    assert "from step 2 on, 1-WL from step 1 on" in of("CCCC", "CC(C)C")


def test_random_walks_of_the_pairs_match_a_dense_matrix_power() -> None:
    for graph in (decalin(), csl(11, 2)):
        adjacency = nx.to_numpy_array(to_networkx(graph, to_undirected=True))
        walk = adjacency / adjacency.sum(1, keepdims=True)
        expected = np.stack([np.linalg.matrix_power(walk, step).diagonal() for step in range(1, 6)], axis=1)
        found = node_kinds([graph], 5)
        assert np.allclose(found.vectors[found.kinds[0]], expected, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_encodings_tell_apart_what_degrees_and_1_wl_do_not(name: str) -> None:
    assert weisfeiler_lehman_test(*PAIRS[name]).step is None
    found = compare_encodings(*PAIRS[name])
    assert set(found) == set(KINDS)
    told_by = {kind for kind, column in found.items() if column is not None}
    if name == "rook, Shrikhande":
        assert not told_by
    elif name == "isospectral circulants":  # no walk can tell them apart by coming back
        assert random_walk_test(*PAIRS[name]).step is None
        assert told_by == {"resistance", "rrwp", "heat-pairs", "ppr-pairs", "resistance-pairs"}
    else:
        assert told_by == {*KINDS} - {"degree"}


@settings(max_examples=40, deadline=None)
@given(random_graphs(min_nodes=1, max_nodes=8, directed=True, self_loops=True), st.integers(0, 10**6))
def test_no_encoding_tells_a_graph_from_itself(data, seed):
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    assert set(compare_encodings(data, permuted(data, order)).values()) == {None}


@settings(max_examples=60, deadline=None)
@given(random_graphs(min_nodes=4, max_nodes=5), random_graphs(min_nodes=4, max_nodes=5))
def test_walks_as_an_encoding_say_what_the_exact_test_says(first, second):
    n = first.num_nodes
    found = compare_encodings(first, second, k=n, kinds=["rwpe"])["rwpe"]
    if first.num_nodes == second.num_nodes and first.num_edges == second.num_edges:
        assert found == random_walk_test(first, second).step


def test_labels_and_numbers_of_nodes_differ_before_the_first_column() -> None:
    assert set(compare_encodings("CCO", "CCN").values()) == {None}
    assert set(compare_encodings("CCO", "CCN", label="element").values()) == {0}
    assert set(compare_encodings("CCO", "CCCO").values()) == {0}
    # the same elements at other places: a label of its own for the pair of them
    found = compare_encodings("CCOC", "CCCO", label="element")
    assert None not in found.values()


def test_kinds_for_which_graphs_are_too_large_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lspe.encodings.tell_apart.MOST_NODES_OF_PAIRS", 5)
    monkeypatch.setattr("lspe.encodings.dense.MOST_NODES", 5)
    assert set(compare_encodings(nx.cycle_graph(6), nx.path_graph(6))) == {"rwpe", "lappe", "degree"}
