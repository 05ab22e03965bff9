"""Sets of graphs with pairs: batches, unjoined pairs, what an epoch sees."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from lspe.data import BatchLoader, GraphData, from_pyg
from lspe.data.packed.links import LinkGraphs
from lspe.data.packed.pointers import pointers
from lspe.data.packed.unjoined import draw_unjoined, pair_codes
from lspe.encodings import encode
from tests.levels import communities

Pair = tuple[int, int, int]


@pytest.fixture(scope="module")
def data() -> GraphData:
    return from_pyg([communities(12 + 5 * number, seed=number) for number in range(6)], level="link")


def seen(graphs: LinkGraphs) -> set[Pair]:
    """Graph and ends of each edge, in both directions."""
    edges = set()
    for number in range(len(graphs)):
        edges |= {(number, i, j) for i, j in graphs[number].edge_index.T.tolist()}
    return edges


def asked(graphs: LinkGraphs, joined: int) -> set[Pair]:
    pairs = set()
    for number in range(len(graphs)):
        graph = graphs[number]
        pairs |= {(number, i, j) for i, j in graph.edge_label_index.T[graph.y[:, 0] == joined].tolist()}
    return pairs


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_a_batch_is_what_pyg_makes_of_the_graphs(data: GraphData, split: str) -> None:
    graphs = data.split(split)
    chosen = [4, 0, 3]
    ours, theirs = graphs.batch(chosen), Batch.from_data_list([graphs[number] for number in chosen])
    assert set(ours.keys()) == set(theirs.keys())
    for name in ("edge_index", "edge_label_index", "y", "batch", "ptr"):
        assert torch.equal(ours[name], theirs[name]), name
    for one, other in zip(ours.to_data_list(), theirs.to_data_list(), strict=True):
        assert torch.equal(one.edge_label_index, other.edge_label_index)
        assert torch.equal(one.y, other.y)
    view = graphs.select(chosen)
    assert torch.equal(view.batch().edge_label_index, ours.edge_label_index)
    np.testing.assert_array_equal(view.y, ours.y)
    np.testing.assert_array_equal(view.num_pairs, [len(graphs[number].y) for number in chosen])


def test_a_file_and_a_pickle_give_the_same_back(data: GraphData, tmp_path) -> None:
    again = data.save(tmp_path / "links.lspe")
    assert (again.level, again.divided) == ("link", "targets")
    for one in (again, replace(again, graphs=pickle.loads(pickle.dumps(again.graphs)))):
        for split in data.splits:
            ours, theirs = one.split(split).batch(), data.split(split).batch()
            for name in ("edge_index", "edge_label_index", "y"):
                assert torch.equal(ours[name], theirs[name])


def test_each_epoch_draws_pairs_that_are_not_joined(data: GraphData) -> None:
    train = data.split("train")
    first, again, other = train.in_epoch(7, 0), train.in_epoch(7, 0), train.in_epoch(7, 1)
    np.testing.assert_array_equal(first.pairs, again.pairs)
    assert asked(first, 0) != asked(other, 0)
    for epoch in (first, other):
        assert asked(epoch, 1) == asked(train, 1)
        assert not asked(epoch, 0) & seen(train)
        np.testing.assert_array_equal(np.diff(epoch.pair_ptr), 2 * np.diff(train.pair_ptr))
    for split in ("val", "test"):
        assert data.split(split).in_epoch(7, 0) is not None
        np.testing.assert_array_equal(data.split(split).in_epoch(7, 3).pairs, data.split(split).pairs)


def test_pairs_for_training_know_nothing_of_hidden_edges(data: GraphData) -> None:
    """To leave them out would tell the network where they are."""
    train = data.split("train")
    hidden = asked(data.split("val"), 1) | asked(data.split("test"), 1)
    drawn = set().union(*(asked(train.in_epoch(0, epoch), 0) for epoch in range(200)))
    assert hidden <= drawn


def test_an_epoch_hides_what_it_asks_for_also_from_the_encodings(data: GraphData) -> None:
    train = replace(data.with_encoding("rwpe", 4).split("train"), hidden_share=0.25)
    epoch, other = train.in_epoch(1, 0), train.in_epoch(1, 1)
    questions = asked(epoch, 1)
    assert len(questions) == round(0.25 * len(train.joined))
    assert questions != asked(other, 1)
    backwards = {(graph, j, i) for graph, i, j in questions}
    assert seen(epoch) == seen(train) - questions - backwards
    assert not asked(epoch, 0) & seen(train), "what is hidden in this epoch is joined all the same"
    batch = epoch.batch()
    rwpe = encode("rwpe", batch.edge_index, batch.num_nodes, 4, batch=batch.batch)
    torch.testing.assert_close(batch.random_walk_pe, rwpe)
    assert not torch.equal(batch.random_walk_pe, train.batch().random_walk_pe)


def test_the_loader_gives_what_its_epoch_sees(data: GraphData) -> None:
    train = replace(data.split("train"), hidden_share=0.25)
    loader = BatchLoader(train, len(train), seed=3)
    loader.set_epoch(5)
    [batch] = loader
    assert torch.equal(batch.edge_label_index, train.in_epoch(3, 5).batch().edge_label_index)
    several = [list(BatchLoader(train, 4, seed=3, rank=rank, world_size=2)) for rank in range(2)]
    pairs = sum(int(batch.y.numel()) for part in several for batch in part)
    assert pairs == len(train.in_epoch(3, 0).joined)


def test_every_unjoined_pair_is_as_likely_as_any_other() -> None:
    """Of the ten pairs of a path of five nodes six are not joined."""
    ptr = pointers([5, 1])
    joined = np.sort(pair_codes(ptr, np.zeros(4, dtype=np.int64), np.array([[0, 1, 2, 3], [1, 2, 3, 4]])))
    graph, pairs = draw_unjoined(ptr, np.array([60_000, 3]), joined, np.random.default_rng(0))
    assert not graph.any(), "a single node has no pair"
    assert (pairs[0] < pairs[1]).all()
    codes, counts = np.unique(pairs[0] * 5 + pairs[1], return_counts=True)
    assert codes.tolist() == [2, 3, 4, 8, 9, 14]
    assert abs(counts - 10_000).max() < 500


def test_distinct_pairs_and_graphs_with_few_of_them() -> None:
    ptr = pointers([4])
    all_but_one = np.array([[0, 0, 0, 1, 1], [1, 2, 3, 2, 3]])
    joined = np.sort(pair_codes(ptr, np.zeros(5, dtype=np.int64), all_but_one))
    _, pairs = draw_unjoined(ptr, np.array([50]), joined, np.random.default_rng(0), distinct=True)
    assert pairs.tolist() == [[2], [3]]
    complete = np.sort(np.append(joined, pair_codes(ptr, np.zeros(1, dtype=np.int64), pairs)))
    graph, _ = draw_unjoined(ptr, np.array([50]), complete, np.random.default_rng(0))
    assert not len(graph)
