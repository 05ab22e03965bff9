"""What holds for every kind of encoding, whatever it computes."""

import itertools
from typing import Any

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from lspe.encodings import KINDS, AddEncoding, all_pairs, encode, encode_pairs, find_kind
from lspe.encodings import dense as dense_matrices
from tests.apple import OnApple, apple_device
from tests.graphs import CORNER_CASES, decalin, from_edges, from_networkx, permuted_batch, random_batches

any_graph = {"directed": True, "self_loops": True, "parallel_edges": True}
EVERY = pytest.mark.parametrize("kind", KINDS)
# eigenvectors depend on the order of the nodes where an eigenvalue occurs twice
UNIQUE = pytest.mark.parametrize("kind", [name for name in KINDS if not find_kind(name).has_signs])


def values_of(kind: str, data: Data, k: int = 6) -> torch.Tensor:
    """The encoding of all nodes, or of all pairs of them, with weights in a range that resistances can have."""
    weight = None if data.edge_weight is None else data.edge_weight + 0.125
    options = {"edge_weight": weight, "batch": data.batch, "dtype": torch.float64}
    if find_kind(kind).level == "pair":
        pairs = all_pairs(data.num_nodes, data.batch)
        k = find_kind(kind).width or k
        return encode_pairs(kind, data.edge_index, data.num_nodes, k, pairs=pairs, **options)
    return encode(kind, data.edge_index, data.num_nodes, k, **options)


def compute(kind: str, edge_index: torch.Tensor, num_nodes: int | None, k: int, **options: Any) -> torch.Tensor:
    """The encoding of all nodes, or of all edges."""
    call = encode if find_kind(kind).level == "node" else encode_pairs
    return call(kind, edge_index, num_nodes, find_kind(kind).width or k, **options)


def rows_of(kind: str, data: Data) -> int:
    return data.num_nodes if find_kind(kind).level == "node" else data.num_edges


@EVERY
@settings(max_examples=40, deadline=None)
@given(batch=random_batches(weighted=True, **any_graph) | random_batches(max_graphs=6), k=st.integers(1, 9))
def test_a_batch_has_the_bits_of_its_graphs_alone(kind: str, batch: Batch, k: int) -> None:
    alone = torch.cat([values_of(kind, data, k) for data in batch.to_data_list()])
    assert torch.equal(values_of(kind, batch, k), alone)


@EVERY
def test_the_bits_of_a_batch_of_all_sizes(kind: str) -> None:
    singles = [from_networkx(nx.gnm_random_graph(n, n, seed=n + 100 * copy)) for n in range(1, 30) for copy in range(3)]
    alone = torch.cat([values_of(kind, data, 5) for data in singles])
    assert torch.equal(values_of(kind, Batch.from_data_list(singles), 5), alone)


@UNIQUE
@settings(max_examples=40, deadline=None)
@given(batch=random_batches(weighted=True, **any_graph), seed=st.integers(0, 10**6))
def test_renaming_the_nodes_renames_the_rows(kind: str, batch: Batch, seed: int) -> None:
    renamed, order = permuted_batch(batch, torch.Generator().manual_seed(seed))
    expected = values_of(kind, batch)
    if find_kind(kind).level == "pair":
        number = {pair: row for row, pair in enumerate(zip(*all_pairs(0, batch.batch).tolist(), strict=True))}
        expected = expected[[number[i, j] for i, j in order[all_pairs(0, batch.batch)].t().tolist()]]
    else:
        expected = expected[order]
    torch.testing.assert_close(values_of(kind, renamed), expected, rtol=1e-11, atol=1e-11)


@UNIQUE
@settings(max_examples=40, deadline=None)
@given(batch=random_batches(weighted=True, **any_graph), isolated=st.integers(1, 5))
def test_isolated_nodes_change_nothing_for_the_others(kind: str, batch: Batch, isolated: int) -> None:
    data = batch.get_example(0)
    more = Data(edge_index=data.edge_index, edge_weight=data.edge_weight, num_nodes=data.num_nodes + isolated)
    both = values_of(kind, more)
    if find_kind(kind).level == "pair":
        i, j = all_pairs(more.num_nodes) < data.num_nodes
        torch.testing.assert_close(both[i & j], values_of(kind, data), rtol=1e-11, atol=1e-11)
        assert not both[i != j].any(), "nothing joins them"
        return
    torch.testing.assert_close(both[: data.num_nodes], values_of(kind, data), rtol=1e-11, atol=1e-11)
    one = values_of(kind, from_edges(1, []))
    torch.testing.assert_close(both[data.num_nodes :], one.expand(isolated, -1), rtol=0, atol=1e-15)


@EVERY
def test_the_first_columns_do_not_depend_on_their_number(kind: str) -> None:
    if find_kind(kind).width is not None:
        return
    for data in CORNER_CASES.values():
        torch.testing.assert_close(values_of(kind, data, 9)[:, :4], values_of(kind, data, 4), rtol=0, atol=1e-13)


@EVERY
def test_every_shape_there_is(kind: str) -> None:
    no_edge = torch.empty(2, 0, dtype=torch.long)
    for n, k in ((0, 3), (1, 1), (5, 12)):
        data = Data(edge_index=no_edge, num_nodes=n)
        assert compute(kind, no_edge, n, k).shape == (rows_of(kind, data), find_kind(kind).width or k)
    assert len(compute(kind, torch.tensor([[0, 1], [1, 0]]), None, 2, batch=torch.tensor([1, 1, 3]))) in (2, 3)
    for data in CORNER_CASES.values():
        values = compute(kind, data.edge_index, data.num_nodes, 30)
        assert values.shape == (rows_of(kind, data), find_kind(kind).width or 30)
        assert values.dtype is torch.float32
        assert values.isfinite().all()


@EVERY
def test_what_is_wrong_is_named(kind: str) -> None:
    edges = decalin().edge_index
    with pytest.raises(ValueError, match=r"edge 6 \(3 → 4\) points outside the graph"):
        compute(kind, edges, 4, 3)
    with pytest.raises(ValueError, match=r"edge_weight\[0\] of edge .* is -1.0"):
        compute(kind, edges, 10, 3, edge_weight=-torch.ones(edges.size(1)))
    with pytest.raises(ValueError, match="joins graph"):
        compute(kind, edges, None, 3, batch=torch.arange(10))
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        AddEncoding(kind, 0)


def test_a_kind_of_another_level_or_width_is_refused_in_words() -> None:
    edges = decalin().edge_index
    with pytest.raises(ValueError, match="'rrwp' is an encoding of pairs, and here one of nodes is needed: rwpe"):
        encode("rrwp", edges, 10, 3)
    with pytest.raises(ValueError, match="'rwpe' is an encoding of nodes, and here one of pairs is needed: rrwp, heat"):
        encode_pairs("rwpe", edges, 10, 3)
    with pytest.raises(ValueError, match="'resistance-pairs' has k = 1 columns, not 3"):
        encode_pairs("resistance-pairs", edges, 10, 3)
    with pytest.raises(ValueError, match=r"edge 1 \(0 → 12\) points outside"):
        encode_pairs("rrwp", edges, 10, 3, pairs=torch.tensor([[0, 0], [1, 12]]))


@settings(max_examples=40, deadline=None)
@given(batch=random_batches(max_graphs=5))
def test_all_pairs_are_those_of_each_graph(batch: Batch) -> None:
    nodes = [range(start, end) for start, end in itertools.pairwise(batch.ptr.tolist())]
    expected = [[i, j] for graph in nodes for i in graph for j in graph]
    assert all_pairs(batch.num_nodes, batch.batch).t().tolist() == expected
    assert all_pairs(2).tolist() == [[0, 0, 1, 1], [0, 1, 0, 1]]


@EVERY
def test_transforms_of_graphs_and_batches(kind: str) -> None:
    attribute, k = find_kind(kind).attribute, find_kind(kind).width or 4
    graphs = [decalin(), from_edges(1, []), from_edges(3, [(0, 2)])]
    batch = AddEncoding(kind, k)(Batch.from_data_list(graphs))
    for one, alone in zip(batch.to_data_list(), graphs, strict=True):
        assert torch.equal(one[attribute], AddEncoding(kind, k)(alone)[attribute])
    assert torch.equal(batch[attribute], compute(kind, batch.edge_index, None, k, batch=batch.batch))
    first = AddEncoding(kind, k, attr_name="mine")(graphs[0]).mine
    assert first.shape == (rows_of(kind, graphs[0]), k)
    appended = AddEncoding(kind, k, attr_name=None)(graphs[0])
    assert torch.equal(appended.x if find_kind(kind).level == "node" else appended.edge_attr, first)


@EVERY
def test_a_device_without_float64_gets_what_the_cpu_computes(kind: str) -> None:
    edges = torch.tensor([[0, 1, 2, 3, 4, 1, 2, 0, 4, 3], [1, 2, 0, 4, 3, 0, 1, 2, 3, 4]])
    weight = torch.tensor([1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 2.0, 0.5, 1.0, 1.0])
    batch = torch.tensor([0, 0, 0, 1, 1])
    expected = compute(kind, edges, None, 4, edge_weight=weight, batch=batch)
    with apple_device() as device:
        result = compute(kind, edges.to(device), None, 4, edge_weight=weight.to(device), batch=batch.to(device))
        assert isinstance(result, OnApple)
        back = result.cpu()
    assert torch.allclose(back, expected, rtol=1e-6, atol=1e-7)


def test_dense_matrices_of_a_huge_graph_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_matrices, "MOST_NODES", 9)
    for kind in ("heat", "ppr", "resistance", "rrwp"):
        with pytest.raises(ValueError, match=r"a graph has 10 nodes: .* up to 9 nodes\. For larger ones use 'rwpe'"):
            compute(kind, decalin().edge_index, 10, 3)
