import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from lspe.data import DataError, PackedGraphs, PackedWriter
from lspe.data.packed.undirected import both_directions
from lspe.data.packed.writer import concatenate


def random_set(seed: int, graphs: int, *, features: bool = True) -> PackedGraphs:
    """Graphs of 1 to 8 nodes, directed, some without edges, some with parallel edges and loops."""
    generator = np.random.default_rng(seed)
    num_nodes = generator.integers(1, 9, graphs)
    num_edges = generator.integers(0, 12, graphs)
    owner = np.repeat(num_nodes, num_edges)
    nodes, edges = int(num_nodes.sum()), int(num_edges.sum())
    return PackedGraphs.from_arrays(
        num_nodes,
        num_edges,
        np.stack([generator.integers(0, owner), generator.integers(0, owner)]),
        node={"x": generator.integers(0, 28, nodes).astype(np.uint8)} if features else {},
        edge={"edge_attr": generator.random((edges, 2)).astype(np.float32)} if features else {},
        graph={"y": generator.random((graphs, 3)).astype(np.float32), "table_row": np.arange(graphs)},
    )


def assert_same_batch(ours: Batch, theirs: Batch) -> None:
    assert type(ours) is type(theirs)
    assert list(ours.to_dict()) == list(theirs.to_dict())
    for key in theirs.keys():  # noqa: SIM118
        if isinstance(theirs[key], torch.Tensor):
            assert ours[key].dtype == theirs[key].dtype, key
            assert torch.equal(ours[key], theirs[key]), key
        else:
            assert ours[key] == theirs[key], key
    assert ours.num_graphs == theirs.num_graphs
    assert ours._slice_dict.keys() == theirs._slice_dict.keys()
    for key, slices in theirs._slice_dict.items():
        assert torch.equal(ours._slice_dict[key], slices), key
        assert torch.equal(ours._inc_dict[key], theirs._inc_dict[key]), key


def assert_same_data(ours: Data, theirs: Data) -> None:
    assert list(ours.to_dict()) == list(theirs.to_dict())
    for key in theirs.keys():  # noqa: SIM118
        assert torch.equal(torch.as_tensor(ours[key]), torch.as_tensor(theirs[key])), key


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    graphs=st.integers(1, 12),
    features=st.booleans(),
    chosen=st.lists(st.integers(0, 11), min_size=1, max_size=15),
)
def test_batch_equals_pygs_collation_field_by_field(seed: int, graphs: int, features: bool, chosen: list[int]) -> None:
    packed = random_set(seed, graphs, features=features)
    indices = [one % graphs for one in chosen]
    ours = packed.batch(indices)
    assert_same_batch(ours, Batch.from_data_list([packed[i] for i in indices]))
    for position, data in enumerate(ours.to_data_list()):
        assert_same_data(data, packed[indices[position]])
    assert_same_data(ours[0], packed[indices[0]])


def test_a_plain_pyg_loader_gives_the_same_batches(tmp_path: Path) -> None:
    packed = random_set(3, 23).save(tmp_path / "set.lspe")
    for step, batch in enumerate(DataLoader(packed, batch_size=5)):
        assert_same_batch(packed.batch(range(step * 5, min(step * 5 + 5, 23))), batch)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_writing_in_parts_and_mapping_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, seed: int, sizes: list[int]
) -> None:
    parts = [random_set(seed + number, size) for number, size in enumerate(sizes)]
    path = tmp_path_factory.mktemp("packed") / "set.lspe"
    with PackedWriter(path) as writer:
        for part in parts:
            writer.append(part)
        writer.finish()
    mapped = PackedGraphs.open(path)
    expected = [data for part in parts for data in part]
    assert len(mapped) == len(expected) == len(concatenate(parts))
    for ours, theirs in zip(mapped, expected, strict=True):
        assert_same_data(ours, theirs)


def test_edges_are_sorted_by_target_and_keep_their_attributes() -> None:
    packed = PackedGraphs.from_arrays(
        [3, 2], [4, 1], [[2, 0, 1, 0, 1], [1, 2, 0, 1, 0]], edge={"edge_attr": np.array([21, 2, 10, 1, 10])}
    )
    assert packed[0].edge_index.tolist() == [[1, 0, 2, 0], [0, 1, 1, 2]]
    assert packed[0].edge_attr.tolist() == [10, 1, 21, 2]
    targets = packed.batch().edge_index[1]
    assert torch.equal(targets, targets.sort().values)


def test_both_directions_pairs_each_edge_with_its_reverse() -> None:
    num_edges, edge_index, (kind,) = both_directions([1, 2], [[0, 0, 1], [1, 1, 2]], np.array([7, 8, 9]))
    assert num_edges.tolist() == [2, 4]
    assert edge_index.tolist() == [[0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]]
    assert kind.tolist() == [7, 7, 8, 8, 9, 9]


def test_a_selection_is_a_view_of_the_same_graphs() -> None:
    packed = random_set(5, 10)
    chosen = packed.select([7, 2, 2, -1])
    assert [int(data.table_row) for data in chosen] == [7, 2, 2, 9]
    assert chosen.select([1, 3]).column("table_row").tolist() == [2, 9]
    assert_same_batch(chosen.batch([0, 1]), packed.batch([7, 2]))
    assert_same_batch(chosen.batch([-1]), packed.batch([9]))
    assert chosen.num_nodes.tolist() == [packed[i].num_nodes for i in (7, 2, 2, 9)]
    assert chosen.num_edges.tolist() == [packed[i].num_edges for i in (7, 2, 2, 9)]
    assert chosen.node["x"] is packed.node["x"]


def test_a_batch_of_no_graphs_has_no_rows() -> None:
    batch = random_set(5, 4).batch([])
    assert batch.num_graphs == 0
    assert batch.x.shape == (0,)
    assert batch.edge_index.shape == (2, 0)
    assert batch.y.shape == (0, 3)
    assert batch.ptr.tolist() == [0]


def test_another_process_maps_the_same_file_with_its_encodings(tmp_path: Path) -> None:
    packed = random_set(1, 6).save(tmp_path / "set.lspe").with_encoding("rwpe", 4).select([4, 1])
    content = pickle.dumps(packed)
    assert len(content) < 1000
    again = pickle.loads(content)
    assert_same_batch(again.batch(), packed.batch())
    assert "random_walk_pe" in again[0]
    in_memory = random_set(1, 6).select([3])
    assert_same_batch(pickle.loads(pickle.dumps(in_memory)).batch(), in_memory.batch())


@pytest.mark.parametrize("indices", [[10], [-11], [0.5], [[1, 2]], [True, False]])
def test_impossible_indices_are_refused(indices: list[object]) -> None:
    with pytest.raises(IndexError, match="graphs"):
        random_set(5, 10).batch(indices)
    with pytest.raises(IndexError, match="of a set of 10"):
        random_set(5, 10)[10]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"node": {"x": np.zeros(3)}}, "node column 'x' has 3 rows for 2 nodes"),
        ({"edge": {"edge_attr": np.zeros(3)}}, "edge column 'edge_attr' has 3 rows for 1 edges"),
        ({"graph": {"y": np.zeros(2)}}, "graph column 'y' has 2 rows for 1 graphs"),
        ({"node": {"x": np.array([0.0, np.nan])}}, "not a number in row 1"),
        ({"graph": {"row_index": np.zeros(1)}}, "cannot be called 'row_index'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, dict[str, np.ndarray]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        PackedGraphs.from_arrays([2], [1], [[0], [1]], **columns)


def test_an_edge_to_nowhere_names_its_graph() -> None:
    with pytest.raises(DataError, match="graph 1 has an edge 0 → 2 but only 2 nodes"):
        PackedGraphs.from_arrays([3, 2], [1, 1], [[0, 0], [2, 2]])
    with pytest.raises(DataError, match="graph 0 has an edge -1"):
        PackedGraphs.from_arrays([3], [1], [[-1], [2]])


def test_a_selection_is_not_written_by_mistake(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="selection"):
        random_set(1, 4).select([1]).save(tmp_path / "set")


def test_small_index_types_refuse_graphs_that_are_too_large(tmp_path: Path) -> None:
    large = PackedGraphs.from_arrays([300], [0], np.empty((2, 0), dtype=np.int64))
    with PackedWriter(tmp_path / "set", index_dtype=np.uint8) as writer, pytest.raises(DataError, match="300 nodes"):
        writer.append(large)


def test_a_selection_does_not_change_with_the_array_it_was_made_of() -> None:
    indices = np.array([3, 1])
    chosen = random_set(1, 6).select(indices)
    indices[:] = 0
    assert chosen.column("table_row").tolist() == [3, 1]
