import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import FakeDataset

from lspe.data import DataError, from_pyg
from lspe.data.graphs.pyg import pack, read_folder


def ring(n: int, **attributes: torch.Tensor) -> Data:
    node = torch.arange(n)
    edge_index = torch.stack([torch.cat([node, (node + 1) % n]), torch.cat([(node + 1) % n, node])])
    return Data(edge_index=edge_index, num_nodes=n, **attributes)


def typed(n: int, y: float) -> Data:
    return ring(n, x=torch.arange(n), edge_attr=torch.ones(2 * n, dtype=torch.long), y=torch.tensor([y]))


def test_a_batch_of_packed_graphs_is_the_batch_of_the_originals() -> None:
    graphs = [data.sort(sort_by_row=False) for data in FakeDataset(20, avg_num_nodes=8, edge_dim=2)]
    packed, features = pack(graphs)
    assert (features.kind, features.node_features, features.edge_features) == ("continuous", 64, 2)
    ours, theirs = packed.batch([3, 17, 4]), Batch.from_data_list([graphs[i] for i in (3, 17, 4)])
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert torch.equal(ours.edge_attr, theirs.edge_attr)
    assert torch.equal(ours.batch, theirs.batch)


def test_types_are_categorical() -> None:
    data = from_pyg([typed(n, n / 2) for n in range(3, 13)])
    assert (data.task, data.num_outputs) == ("regression", 1)
    assert (data.features.kind, data.features.node_types, data.features.edge_types) == ("categorical", 12, 2)
    assert data.graphs[0].x.tolist() == [0, 1, 2]
    assert {name: len(part) for name, part in data.splits.items()} == {"train": 8, "val": 1, "test": 1}


def test_a_column_of_types_becomes_a_vector() -> None:
    graph = ring(4, x=torch.arange(4).reshape(-1, 1), edge_attr=torch.ones(8, 1, dtype=torch.long))
    packed, features = pack([graph])
    assert (features.kind, packed[0].x.shape, packed[0].edge_attr.shape) == ("categorical", (4,), (8,))


def test_ogbs_features_are_recognised() -> None:
    graph = ring(4, x=torch.zeros(4, 9, dtype=torch.long), edge_attr=torch.zeros(8, 3, dtype=torch.long))
    assert pack([graph])[1].kind == "ogb"
    graph.x[0, 8] = 2
    with pytest.raises(DataError, match="not OGB's"):
        pack([graph])


def test_missing_features_are_filled_in_where_a_network_needs_them() -> None:
    bare, features = pack([ring(3)])
    assert (features.kind, set(bare[0].keys())) == ("none", {"edge_index", "num_nodes"})
    continuous, features = pack([ring(3, x=torch.rand(3, 2))])
    assert (features.kind, features.edge_features) == ("continuous", 1)
    assert torch.equal(continuous[0].edge_attr, torch.ones(6, 1))
    types, features = pack([ring(3, x=torch.arange(3))])
    assert types[0].edge_attr.tolist() == [1] * 6


@pytest.mark.parametrize(
    ("y", "task", "outputs"),
    [
        ([torch.tensor([1.5]), torch.tensor([2.0])], "regression", 1),
        ([torch.tensor(1.5), torch.tensor(2.0)], "regression", 1),
        ([torch.tensor([[1.5, 2.0]]), torch.tensor([[2.0, float("nan")]])], "regression", 2),
        ([torch.tensor([[1.0, float("nan")]]), torch.tensor([[0.0, 1.0]])], "binary", 2),
        ([torch.tensor([1]), torch.tensor([0])], "binary", 1),
        ([torch.tensor([2]), torch.tensor([0])], "multiclass", 3),
    ],
)
def test_the_task_follows_from_y(y: list[torch.Tensor], task: str, outputs: int) -> None:
    data = from_pyg([ring(3, y=one) for one in y * 5])
    assert (data.task, data.num_outputs) == (task, outputs)
    batch = data.graphs.batch([0, 1])
    if task == "multiclass":
        assert torch.equal(batch.y, torch.cat(y))
    else:
        expected = torch.stack([one.reshape(-1) for one in y]).float()
        assert torch.equal(batch.y.nan_to_num(-9), expected.nan_to_num(-9))


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "no graphs"),
        ([typed(3, 1.0), "CCO"], "graph 1 is a str"),
        (["CCO"], "graph 0 is a str"),
        ([Data(x=torch.rand(2, 1))], "graph 0 has no edge_index"),
        ([Data(edge_index=torch.tensor([[0], [1]]))], "says nowhere how many nodes"),
        ([typed(3, 1.0), ring(3, x=torch.arange(3))], "graph 1 has no tensor 'edge_attr'"),
        ([ring(3, x=torch.rand(3, 2)), ring(3, x=torch.rand(3, 1))], "'x' has different shapes"),
        ([ring(3, x=torch.arange(3), edge_attr=torch.zeros(6, dtype=torch.long))], "edge types at 1"),
        ([ring(3, x=torch.arange(3) - 1, edge_attr=torch.rand(6))], "x has a type below 0"),
        ([ring(3, node_type=torch.rand(3))], "node_type holds floating point numbers"),
        ([ring(3, x=torch.tensor([[0.0], [float("inf")], [0.0]]))], "not a number in row 1"),
        ([ring(3, x=torch.tensor([[0.0], [0.0], [1e300]], dtype=torch.double))], "not a number in row 2"),
    ],
)
def test_graphs_that_cannot_be_used_say_why(graphs: list[Data], message: str) -> None:
    with pytest.raises(DataError, match=message):
        pack(graphs)


def shaped(*graphs: tuple[int, tuple[int, ...]]) -> list[Data]:
    """Rings of so many nodes with a ``y`` of such a shape."""
    return [ring(n, y=torch.rand(shape)) for n, shape in graphs] * 4


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (shaped((5, (5,)), (5, (5,))), r"y of graph 0 has shape \[5\], and all graphs have 5 nodes.*reshape\(1, -1\)"),
        (shaped((5, (10,)), (5, (10,))), r"\[10\], and all graphs have 10 edges.*a label per edge"),
        (shaped((5, (1, 2)), (5, (1, 3))), r"y of graph 1 has shape \[1, 3\], that of graph 0 \[1, 2\].*the same T"),
        (
            shaped((5, (2, 1)), (5, (2, 1))),
            r"graph 0 has shape \[2, 1\]: the targets of a graph have shape \[1, T\]",
        ),
    ],
)
def test_targets_of_an_unclear_level_say_why(graphs: list[Data], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_pyg(graphs)


@pytest.mark.parametrize(
    ("graphs", "outputs"),
    [
        (shaped((3, (1, 3)), (3, (1, 3))), 3),  # as many targets as nodes by chance
        (shaped((3, (3,)), (4, (3,))), 3),
        (shaped((1, (1,)), (4, (1,))), 1),
        (shaped((1, (1,)), (1, (1,))), 1),
        (shaped((1, (3,)), (1, (3,))), 3),
        (shaped((1, (1, 2)), (4, (1, 2))), 2),
        (shaped((3, (1, 2)), (4, (2,))), 2),
    ],
)
def test_targets_of_graphs_are_told_by_their_shape(graphs: list[Data], outputs: int) -> None:
    data = from_pyg(graphs)
    assert (data.task, data.num_outputs) == ("regression", outputs)
    assert torch.equal(data.graphs.batch([0, 1]).y, torch.cat([graph.y.reshape(1, -1) for graph in graphs[:2]]))


def test_targets_that_cannot_be_learned_say_why() -> None:
    with pytest.raises(DataError, match="have no y"):
        from_pyg([ring(3)] * 4)
    with pytest.raises(DataError, match="no values, or infinite"):
        from_pyg([ring(3, y=torch.tensor([float("inf")]))] * 4)
    with pytest.raises(DataError, match="a graph has no target at all"):
        from_pyg([ring(3, y=torch.tensor([1.5])), ring(3, y=torch.tensor([float("nan")]))] * 4)
    with pytest.raises(DataError, match="a binary y is 0, 1 or NaN"):
        from_pyg([ring(3, y=torch.tensor([1.5]))] * 4, task="binary")
    with pytest.raises(DataError, match="multi-class y is one whole number"):
        from_pyg([ring(3, y=torch.tensor([1.5]))] * 4, task="multiclass")


def test_a_folder_of_saved_graphs(tmp_path: Path) -> None:
    torch.save(typed(3, 0.5), tmp_path / "a.pt")
    torch.save([typed(n, n / 2) for n in range(4, 9)], tmp_path / "b.pt")
    data = from_pyg(tmp_path, splits={"train": np.arange(6)})
    assert data.graphs.num_nodes.tolist() == [3, 4, 5, 6, 7, 8]
    assert data.split("train").y.ravel().tolist() == [0.5, 2, 2.5, 3, 3.5, 4]
    with pytest.raises(DataError, match=r"holds no \.pt files"):
        read_folder(tmp_path / "nowhere")


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch evil",)


def test_a_file_with_more_than_graphs_is_refused_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"graph": typed(3, 0.5), "more": Evil()}, tmp_path / "a.pt")
    with pytest.raises(DataError, match="holds more than PyG Data, and is not read"):
        read_folder(tmp_path)
    assert not (tmp_path / "evil").exists()
    (tmp_path / "a.pt").write_bytes(b"no torch file")
    with pytest.raises(DataError, match="is damaged"):
        read_folder(tmp_path)
