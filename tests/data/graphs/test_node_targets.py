"""Labels of nodes: how they are told from targets of graphs, what is unknown, and how masks divide them."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from lspe.data import DataError, GraphData, from_pyg
from tests.data.graphs.test_pyg import ring, shaped

NAN = float("nan")


def test_a_row_per_node_in_every_graph_is_a_target_of_nodes() -> None:
    for graphs in (
        shaped((3, (3,)), (4, (4,))),
        shaped((1, (1,)), (4, (4,))),
        shaped((3, (3, 1)), (4, (4, 1))),
        shaped((3, (3,))),
    ):
        data = from_pyg(graphs[:1] if len({graph.num_nodes for graph in graphs}) == 1 else graphs)
        assert (data.level, data.task, data.num_outputs) == ("node", "regression", 1)
    several = from_pyg(shaped((1, (1, 2)), (3, (3, 2))))
    assert (several.level, several.num_outputs, several.divided) == ("node", 2, "graphs")


def test_a_batch_has_the_labels_of_its_nodes() -> None:
    graphs = [ring(n, y=torch.arange(n) % 3) for n in (3, 7, 5, 4, 6)]
    data = from_pyg(graphs)
    assert (data.task, data.num_outputs) == ("multiclass", 3)
    assert torch.equal(data.graphs.batch([3, 1]).y, Batch.from_data_list([graphs[3], graphs[1]]).y)
    assert torch.equal(data.graphs[2].y, graphs[2].y)
    assert data.graphs.select([4, 0]).y.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2]


def test_what_fits_both_levels_is_said_by_the_caller() -> None:
    graphs = shaped((5, (5,)), (5, (5,)))
    assert from_pyg(graphs, level="node").level == "node"
    of_graphs = from_pyg(graphs, level="graph")
    assert (of_graphs.level, of_graphs.num_outputs) == ("graph", 5)
    with pytest.raises(DataError, match=r"graph 0 has shape \[1\] and the graph has 5 nodes.*a row per node"):
        from_pyg(shaped((5, (1,)), (4, (1,))), level="node")
    with pytest.raises(DataError, match=r"graph 1 has shape \[5\]: it is a label per node, not of a graph"):
        from_pyg(shaped((4, (4,)), (5, (5,))), level="graph")


@pytest.mark.parametrize(
    ("y", "task", "expected"),
    [
        (torch.tensor([0, 2, -1, 1]), "multiclass", [0, 2, -1, 1]),
        (torch.tensor([0, 1, -1, 1]), "binary", [[0.0], [1.0], [NAN], [1.0]]),
        (torch.tensor([True, False, True, True]), "binary", [[1.0], [0.0], [1.0], [1.0]]),
        (torch.tensor([0.5, NAN, 1.0, 3.0]), "regression", [[0.5], [NAN], [1.0], [3.0]]),
    ],
)
def test_nodes_without_a_label(y: torch.Tensor, task: str, expected: list) -> None:
    data = from_pyg([ring(4, y=y)] * 2 + [ring(5, y=torch.cat([y, y[:1]]))])
    assert data.task == task
    np.testing.assert_array_equal(data.graphs.select([0]).y, np.array(expected))


def test_whole_numbers_of_nodes_can_be_a_regression() -> None:
    data = from_pyg(ring(10, y=torch.arange(10) - 1), task="regression")
    assert not np.isnan(data.graphs.y).any()


def masked(**masks: torch.Tensor) -> Data:
    return ring(10, y=torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, -1]), **masks)


def at(*nodes: int) -> torch.Tensor:
    mask = torch.zeros(10, dtype=torch.bool)
    mask[list(nodes)] = True
    return mask


def test_masks_divide_the_nodes_of_a_graph_that_every_part_sees_whole() -> None:
    data = from_pyg(masked(train_mask=at(0, 1, 2), val_mask=at(3, 4), test_mask=at(5, 6, 9)))
    assert (data.level, data.divided, data.task) == ("node", "targets", "multiclass")
    assert {name: part.tolist() for name, part in data.splits.items()} == {
        "train": [0, 1, 2],
        "val": [3, 4],
        "test": [5, 6],  # node 9 has no label
    }
    val = data.split("val")
    assert val.y.tolist() == [-1, -1, -1, 0, 1, -1, -1, -1, -1, -1]
    batch = val.batch()
    assert batch.y.tolist() == val.y.tolist()
    assert batch.num_nodes == 10
    assert val[0].y.tolist() == val.y.tolist()
    assert "train_mask" not in batch
    assert data.graphs.y.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, -1]


def test_what_is_known_is_kept_in_files_and_other_processes(tmp_path: Path) -> None:
    data = from_pyg(masked(train_mask=at(0, 1, 2), val_mask=at(3, 4), test_mask=at(5, 6)))
    again = data.save(tmp_path / "graphs.lspe")
    assert (again.level, again.divided) == ("node", "targets")
    assert again.split("test").y.tolist() == data.split("test").y.tolist()
    sent: GraphData = pickle.loads(pickle.dumps(again.split("test").with_encoding("rwpe", 2)))
    assert sent.batch().y.tolist() == data.split("test").y.tolist()


def test_several_columns_of_masks_are_folds() -> None:
    train, val = torch.stack([at(0, 1), at(2, 3)], dim=1), torch.stack([at(4), at(0)], dim=1)
    data = from_pyg(masked(train_mask=train, val_mask=val, test_mask=at(7, 8)))
    assert [fold["train"].tolist() for fold in data.folds] == [[0, 1], [2, 3]]
    assert [fold["test"].tolist() for fold in data.folds] == [[7, 8], [7, 8]]
    assert data.fold(1).split("val").y.tolist() == [0, *[-1] * 9]


def test_masks_that_are_not_there_are_made() -> None:
    data = from_pyg(masked(train_mask=at(0, 1, 2, 3)))
    parts = {name: set(part.tolist()) for name, part in data.splits.items()}
    assert len(parts["train"]) == 3
    assert parts["train"] | parts["val"] == {0, 1, 2, 3}
    assert parts["test"] == {4, 5, 6, 7, 8}


def test_without_masks_the_labelled_nodes_of_one_graph_are_divided() -> None:
    y = torch.arange(60) % 3
    y[::4] = -1
    data = from_pyg(ring(60, y=y))
    assert data.divided == "targets"
    assert {name: len(part) for name, part in data.splits.items()} == {"train": 37, "val": 4, "test": 4}
    assert not (np.concatenate([*data.splits.values()]) % 4 == 0).any()
    own = from_pyg(ring(60, y=y), splits={"train": [1], "val": [2], "test": [3]})
    assert own.split("train").y[1] == 1
    assert (own.split("train").y >= 0).sum() == 1


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"train_mask": at(0, 1), "val_mask": at(1), "test_mask": at(2)}, "target 1 is in train and val_mask"),
        ({"train_mask": at(9), "val_mask": at(1), "test_mask": at(2)}, "train_mask marks no target that is known"),
        ({"train_mask": torch.arange(10)}, r"train_mask has shape \[10\] for 10 targets; a mask is true or false"),
        (
            {"train_mask": torch.zeros(10, 2), "val_mask": torch.zeros(10, 3), "test_mask": at(2)},
            "train_mask has 2 columns and others have 3",
        ),
    ],
)
def test_masks_that_cannot_be_used_say_why(masks: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_pyg(masked(**masks))
