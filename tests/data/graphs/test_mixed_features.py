"""Types and numbers side by side: found out, embedded, trained on, and asked for again when predicting."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch, Data

import lspe
from lspe.data import DataError, from_pyg
from lspe.data.graphs.pyg import pack
from lspe.experiment import build_network, override, read_experiment
from lspe.features import MixedFeatures
from lspe.nn.embed import MixedEmbedder
from lspe.testing import check_batch_equals_singles
from tests.data.graphs.test_pyg import ring
from tests.levels import SMALL

CASES = {
    "types of nodes, numbers of edges": (
        ring(4, x=torch.arange(4), edge_attr=torch.rand(8, 2)),
        MixedFeatures(node_types=(4,), edge_features=2),
    ),
    "numbers of nodes, types of edges": (
        ring(4, x=torch.rand(4, 3), edge_attr=torch.arange(8) % 3),
        MixedFeatures(node_features=3, edge_types=(4,)),
    ),
    "several columns of types": (
        ring(4, x=torch.tensor([[0, 5], [1, 0], [2, 0], [0, 0]])),
        MixedFeatures(node_types=(3, 6), edge_types=(3,)),
    ),
    "types beside numbers": (
        ring(
            4, x=torch.rand(4, 2), node_type=torch.arange(4), edge_attr=torch.rand(8), edge_type=torch.zeros(8).long()
        ),
        MixedFeatures(node_types=(4,), node_features=2, edge_types=(2,), edge_features=1),
    ),
    "only edges": (ring(4, edge_attr=torch.rand(8, 1)), MixedFeatures(edge_features=1)),
    "true and false": (
        ring(4, x=torch.tensor([True, False, True, True]), edge_attr=torch.rand(8)),
        MixedFeatures(node_types=(2,), edge_features=1),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_there_is_is_found_out_and_embedded(case: str) -> None:
    graph, expected = CASES[case]
    packed, features = pack([graph, graph])
    assert features == expected
    experiment = override(read_experiment("own/gatedgcn-lspe"), ["model.layers=1", "model.hidden_dim=16"])
    network = build_network(experiment.model_copy(update={"features": features})).eval()
    data = packed.with_encoding("rwpe", 16)
    assert network(data.batch()).shape == (2, 1)
    check_batch_equals_singles(network, [data[0], data[1]], level="graph")
    network.embedder.nodes(data.batch()).sum().backward()
    assert all(parameter.grad is not None for parameter in network.embedder.of_nodes.parameters())


def test_the_embedding_is_the_sum_of_its_parts() -> None:
    embedder = MixedEmbedder(((3, 5), 2), ((4,), 1), 8, 6)
    data = Data(
        x=torch.rand(3, 2),
        node_type=torch.tensor([[0, 4], [2, 1], [1, 0]]),
        edge_attr=torch.rand(2, 1),
        edge_type=torch.tensor([[1], [3]]),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
    )
    nodes, edges = embedder.of_nodes, embedder.of_edges
    table = nodes.table.weight
    expected = nodes.map(data.x) + table[data.node_type[:, 0]] + table[3 + data.node_type[:, 1]]
    torch.testing.assert_close(embedder.nodes(data), expected)
    torch.testing.assert_close(embedder.edges(data), edges.map(data.edge_attr) + edges.table.weight[[1, 3]])
    torch.testing.assert_close(embedder.added_pair(), edges.table.weight[0] + edges.map.bias)


def test_types_of_edges_leave_the_first_entry_to_pairs_without_one() -> None:
    packed, _ = pack([ring(3, x=torch.rand(3, 1), edge_attr=torch.tensor([0, 1, 0, 1, 0, 1]))])
    assert packed[0].edge_type.min() == 1
    assert sorted(packed.batch().edge_type.reshape(-1).tolist()) == [1, 1, 1, 2, 2, 2]
    assert isinstance(packed.batch(), Batch)


def test_a_run_on_mixed_features_predicts_what_it_has_entries_for(tmp_path: Path) -> None:
    def graph(size: int, most: int) -> Data:
        kind = torch.arange(size) % most
        return ring(size, x=kind, edge_attr=torch.rand(2 * size, 1), y=kind.float().mean().reshape(1, 1))

    graphs = [graph(3 + number % 6, 3) for number in range(30)]
    run = lspe.train(graphs, out=tmp_path / "run", epochs=2, settings=SMALL)
    assert run.config.features == MixedFeatures(node_types=(3,), edge_features=1)
    again = lspe.load(run.path)
    assert again.predict([graph(4, 2)]).shape == (1,)
    with pytest.raises(DataError, match=r"types per node \(3\), 1 numbers per edge, but the graphs have .*\(5\)"):
        again.predict([graph(6, 5)])
    with pytest.raises(DataError, match=r"1 numbers per edge, but the graphs have .*2 numbers per edge"):
        again.predict([ring(3, x=torch.arange(3), edge_attr=torch.rand(6, 2))])
    assert from_pyg(graphs).features.kind == "mixed"
