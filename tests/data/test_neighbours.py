"""Batches of nodes with a sample of their neighbourhood."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lspe.data import DataError, NeighbourLoader, PackedGraphs, from_pyg
from lspe.data.neighbours import draw_edges
from tests.levels import edges_of_one_graph, many_graphs, one_graph


def star(leaves: int) -> Data:
    """Every leaf has an edge into node 0, which is the only one with a label."""
    y = torch.full((leaves + 1,), -1)
    y[0] = 1
    edge_index = torch.stack([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.long)])
    number = torch.arange(leaves + 1.0).unsqueeze(1)
    return Data(x=number, edge_index=edge_index, edge_attr=number[1:], y=y)


def train_part(data: Data | list[Data]) -> PackedGraphs:
    return from_pyg(data).split("train")


def numbered(graph: Data) -> Data:
    """With the number of each node as its feature, and of each edge's ends as the edge's."""
    graph.x = torch.arange(graph.num_nodes, dtype=torch.float).unsqueeze(1)
    graph.edge_attr = graph.edge_index.T.float()
    return graph


def test_a_step_is_a_part_of_the_graph_with_the_targets_of_its_nodes() -> None:
    graph = numbered(one_graph(300))
    train = train_part(graph)
    labelled = set((graph.train_mask & (graph.y >= 0)).nonzero().flatten().tolist())
    seen: list[int] = []
    loader = NeighbourLoader(train, 16, [3, 2], shuffle=True, seed=5)
    assert (len(loader), loader.count) == (-(-len(labelled) // 16), len(labelled))
    for batch in loader:
        node = batch.x[:, 0].long()
        assert len(node.unique()) == len(node) == batch.num_nodes
        torch.testing.assert_close(node[batch.edge_index].T.float(), batch.edge_attr)  # edges keep what they carry
        targets = node[batch.y >= 0]
        torch.testing.assert_close(batch.y[batch.y >= 0], graph.y[targets])
        assert len(targets) <= 16
        seen += targets.tolist()
        distance = {int(one): 0 for one in targets}
        for step in (1, 2):
            for source, target in node[batch.edge_index].T.tolist():
                if distance.get(target) == step - 1:
                    distance.setdefault(source, step)
        assert set(node.tolist()) == set(distance)
        in_degree = Counter(node[batch.edge_index[1]].tolist())
        whole = Counter(graph.edge_index[1].tolist())
        for one, steps in distance.items():
            assert in_degree[one] == (0 if steps == 2 else min(whole[one], (3, 2)[steps]))
        pairs = list(map(tuple, batch.edge_index.T.tolist()))
        assert len(set(pairs)) == len(pairs)
        assert (batch.num_graphs, batch.batch.tolist()) == (1, [0] * len(node))
    assert sorted(seen) == sorted(labelled)


def test_with_all_neighbours_a_step_holds_all_that_counts() -> None:
    """As many neighbours as there are: all that two layers can see from the targets."""
    graph = numbered(one_graph(60))
    [batch] = NeighbourLoader(train_part(graph), 1000, [1000, 1000])
    node = batch.x[:, 0].long()
    inner = torch.zeros(60, dtype=torch.bool)
    inner[node[batch.y >= 0]] = True
    for _ in range(2):
        into = inner[graph.edge_index[1]]
        inner[graph.edge_index[0, into]] = True
    assert set(node.tolist()) == set(inner.nonzero().flatten().tolist())


def test_every_edge_is_as_likely_as_any_other_and_none_is_drawn_twice() -> None:
    loader = NeighbourLoader(
        PackedGraphs.from_arrays(
            [31], [30], star(30).edge_index.numpy(), node={"y": star(30).y.numpy(), "x": star(30).x.numpy()}
        ),
        1,
        [7],
    )
    counts = np.zeros(31)
    for epoch in range(3000):
        loader.set_epoch(epoch)
        [batch] = loader
        drawn = batch.x[batch.edge_index[0], 0].long().numpy()
        assert len(set(drawn.tolist())) == 7
        counts[drawn] += 1
    expected = 3000 * 7 / 30
    chi_square = float(((counts[1:] - expected) ** 2 / expected).sum())
    assert chi_square < 29 + 5 * np.sqrt(2 * 29)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_pairs_are_drawn_as_often_as_they_should(count: int) -> None:
    """Of five edges every set of `count` is as likely as any other."""
    pointer = np.array([0, 5])
    random = np.random.default_rng(0)
    found = Counter(
        tuple(np.sort(one).tolist()) for one in (draw_edges(pointer, np.array([0]), count, random) for _ in range(4000))
    )
    sets = {1: 5, 2: 10, 5: 1}[count]
    assert len(found) == sets
    assert max(found.values()) - min(found.values()) < 6 * np.sqrt(4000 / sets)


def test_order_and_draws_come_from_seed_and_epoch() -> None:
    train = train_part(one_graph(300))

    def batches(epoch: int, seed: int = 1) -> list[list[float]]:
        loader = NeighbourLoader(train, 20, [2, 2], shuffle=True, seed=seed)
        loader.set_epoch(epoch)
        return [batch.x.flatten().tolist() for batch in loader]

    assert batches(3) == batches(3)
    assert batches(3) != batches(4)
    assert batches(3) != batches(3, seed=2)


def test_processes_share_the_nodes_of_a_step() -> None:
    train = train_part(numbered(one_graph(300)))

    def targets(rank: int, world_size: int) -> list[set[int]]:
        loader = NeighbourLoader(train, 19, [2], shuffle=True, seed=1, rank=rank, world_size=world_size)
        return [set(batch.x[batch.y >= 0, 0].long().tolist()) for batch in loader]

    alone, parts = targets(0, 1), [targets(rank, 3) for rank in range(3)]
    assert alone == [set.union(*each) for each in zip(*parts, strict=True)]
    assert all(sum(map(len, each)) == len(whole) for whole, each in zip(alone, zip(*parts, strict=True), strict=True))


def test_a_process_without_a_node_gets_a_batch_without_graphs() -> None:
    loader = NeighbourLoader(train_part(one_graph(30)), 1, [2], rank=1, world_size=3)
    assert {batch.num_graphs for batch in loader} == {0}


def test_several_graphs() -> None:
    graphs = [numbered(graph) for graph in many_graphs(10)]
    for number, graph in enumerate(graphs):
        graph.x += 100 * number
        graph.edge_attr += 100 * number
        graph.weight = torch.tensor([float(number)])
    data = from_pyg(graphs)
    for batch in NeighbourLoader(data.split("train"), 5, [2, 2], shuffle=True):
        node = batch.x[:, 0].long()
        torch.testing.assert_close(node[batch.edge_index].T.float(), batch.edge_attr)
        torch.testing.assert_close(batch.weight.flatten()[batch.batch], (node // 100).float())
        assert batch.ptr.tolist() == [0, *torch.bincount(batch.batch).cumsum(0).tolist()]
        assert batch.num_graphs == len(batch.weight)


def test_targets_are_those_of_nodes() -> None:
    with pytest.raises(DataError, match="these graphs have none on nodes"):
        NeighbourLoader(train_part(edges_of_one_graph(60)), 4, [2])


def test_numbers_of_neighbours_are_checked() -> None:
    for wrong in ([], [0], [3, -1]):
        with pytest.raises(ValueError, match="neighbours are one number of at least 1"):
            NeighbourLoader(train_part(one_graph(30)), 4, wrong)
