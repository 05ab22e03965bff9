"""Small graphs with something to learn at each level."""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

SMALL = {"model.layers": 2, "model.hidden_dim": 16, "model.k": 4}


def random_graph(nodes: int, generator: torch.Generator) -> Data:
    """A ring with chords, and two numbers per node; a node's class tells which of its own numbers is greater."""
    ring = torch.arange(nodes)
    chords = torch.randint(0, nodes, (2, nodes // 2), generator=generator)
    edges = torch.cat([torch.stack([ring, (ring + 1) % nodes]), chords[:, chords[0] != chords[1]]], dim=1)
    x = torch.randn(nodes, 2, generator=generator)
    return Data(x=x, edge_index=to_undirected(edges, num_nodes=nodes), y=(x[:, 0] > x[:, 1]).long() + 1)


def many_graphs(count: int = 40) -> list[Data]:
    """A class per node in every graph; some nodes have none."""
    generator = torch.Generator().manual_seed(0)
    graphs = [random_graph(6 + number % 5, generator) for number in range(count)]
    for graph in graphs:
        graph.y[0] = -1
    return graphs


def edges_of(graph: Data) -> Data:
    """The same graph with a class per edge: which of its ends has the greater first number. Some have none."""
    source, target = graph.edge_index
    order = torch.randperm(source.numel(), generator=torch.Generator().manual_seed(1))  # as a person may give them
    edges = Data(x=graph.x, edge_index=graph.edge_index[:, order])
    source, target = edges.edge_index
    edges.y = (graph.x[source, 0] > graph.x[target, 0]).long() + 1
    edges.y[0] = -1
    return edges


def edges_of_one_graph(nodes: int = 150) -> Data:
    """A single graph with masks of its edges, both directions of each in the same part."""
    graph = edges_of(one_graph(nodes))
    part = graph.edge_index.sum(dim=0) % 3
    for number, name in enumerate(("train", "val", "test")):
        graph[f"{name}_mask"] = part == number
    return graph


def one_graph(nodes: int = 300) -> Data:
    """A single graph with masks."""
    graph = random_graph(nodes, torch.Generator().manual_seed(0))
    part = torch.arange(nodes) % 3
    for number, name in enumerate(("train", "val", "test")):
        graph[f"{name}_mask"] = part == number
    graph.y[:6] = -1
    return graph


def communities(nodes: int = 60, groups: int = 4, seed: int = 0) -> Data:
    """A graph without features whose nodes are mostly joined within their group."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.arange(nodes) % groups
    likely = torch.where(group[:, None] == group, 0.6, 0.02)
    edges = (torch.rand(nodes, nodes, generator=generator) < likely).triu(1).nonzero().T
    order = torch.randperm(2 * edges.size(1), generator=generator)  # as a person may give them
    return Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1)[:, order], num_nodes=nodes)
