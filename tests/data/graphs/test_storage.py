"""Files of graphs: what is written comes back, whoever wrote it, and what is wrong is said."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from lspe.data import DataError, from_pyg, read_graphs, save_graphs
from lspe.data.graphs.named import read_named
from lspe.data.graphs.recognition import is_stored_graphs
from tests.data.graphs.test_pyg import ring
from tests.levels import many_graphs, one_graph

KINDS = ("npz", "parquet", "json")


def assert_same(ours: list[Data], theirs: list[Data]) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.num_nodes == other.num_nodes
        names = set(other.to_dict()) - {"num_nodes"}
        assert set(one.to_dict()) - {"num_nodes"} == names
        for name in names:
            expected = other[name]
            assert one[name].shape == expected.shape, name
            assert one[name].dtype == expected.dtype, name
            assert torch.equal(one[name].nan_to_num(-7), expected.nan_to_num(-7)), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", [many_graphs, lambda: [one_graph(20)]])
def test_what_is_written_comes_back(kind: str, source, tmp_path: Path) -> None:
    graphs = source()
    path = tmp_path / f"graphs.{kind}"
    save_graphs(path, graphs)
    assert is_stored_graphs(path)
    stored = read_graphs(path)
    assert stored.level == "node"
    assert_same(stored.graphs, graphs)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_graphs_come_back(kind: str, tmp_path: Path) -> None:
    """No edges, no features, missing targets, widths that only other graphs show."""
    empty = torch.empty(2, 0, dtype=torch.long)
    graphs = [
        Data(edge_index=empty, num_nodes=2, edge_attr=torch.empty(0, 3), y=torch.tensor([[1.5, float("nan")]])),
        Data(
            edge_index=torch.tensor([[0, 1], [1, 0]]),
            num_nodes=5,
            edge_attr=torch.rand(2, 3),
            y=torch.tensor([[float("nan"), -2.0]]),
        ),
    ]
    save_graphs(tmp_path / f"odd.{kind}", graphs)
    stored = read_graphs(tmp_path / f"odd.{kind}")
    assert stored.level == "graph"
    assert_same(stored.graphs, graphs)


def test_what_other_programs_write_is_read(tmp_path: Path) -> None:
    rows = [
        {"edge_index": [[0, 1, 2], [1, 2, 0]], "x": [[0.5], [1], [2]], "y": [0, None, 2]},
        {"edge_index": [[0], [1]], "x": [[1], [0]], "y": [1, 0]},
    ]
    (tmp_path / "bare.json").write_text(json.dumps(rows))
    graphs = read_graphs(tmp_path / "bare.json").graphs
    assert graphs[0].x.dtype == graphs[1].x.dtype == torch.float32
    assert graphs[0].y[1].isnan()
    (tmp_path / "one.json").write_text(json.dumps(rows[1]))
    assert read_graphs(tmp_path / "one.json").graphs[0].y.tolist() == [1, 0]
    pd.DataFrame(rows).to_parquet(tmp_path / "frame.parquet")
    assert_same(read_graphs(tmp_path / "frame.parquet").graphs, graphs)
    np.savez(
        tmp_path / "own.npz",
        **{
            "num_nodes": [3, 2],
            "num_edges": [3, 1],
            "edge_index": [[0, 1, 2, 0], [1, 2, 0, 1]],
            "node/x": [[0.5], [1], [2], [1], [0]],
            "node/y": [0, np.nan, 2, 1, 0],
        },
    )
    ours = read_graphs(tmp_path / "own.npz")
    assert ours.level == "node"
    assert ours.graphs[0].edge_index.tolist() == rows[0]["edge_index"]
    assert from_pyg(ours.graphs * 2, level=ours.level).graphs[1].x.tolist() == [[1], [0]]


def test_a_folder_is_all_its_files_and_may_have_parts(tmp_path: Path) -> None:
    graphs = many_graphs(6)
    (tmp_path / "all").mkdir()
    for name, part in (("a", graphs[:2]), ("b", graphs[2:])):
        save_graphs(tmp_path / "all" / f"{name}.json", part)
    stored = read_graphs(tmp_path / "all")
    assert stored.splits is None
    assert_same(stored.graphs, graphs)
    (tmp_path / "parts").mkdir()
    for name, part in (("train", graphs[:3]), ("val", graphs[3:5]), ("test", graphs[5:])):
        save_graphs(tmp_path / "parts" / f"{name}.npz", part)
    stored = read_graphs(tmp_path / "parts")
    data = from_pyg(stored.graphs, splits=stored.splits)
    assert_same([*data.split("train")], [*from_pyg(graphs[:3], splits={"train": [0]}).graphs])
    assert {name: len(part) for name, part in data.splits.items()} == {"train": 3, "val": 2, "test": 1}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[", "a.json is damaged or not a file of graphs"),
        ("a.json", "[]", "a.json: there are no graphs in it"),
        ("a.json", '[{"x": [1]}]', "a.json: graph 0 has no edge_index"),
        ("a.json", '[{"edge_index": [[0], [1]], "x": [[1], [1, 2]]}]', "graph 0: x is no array of numbers with rows"),
        ("a.json", '[{"edge_index": [[0], [1]], "x": ["C", "N"]}]', "graph 0: x holds .*'C'.*, which is no number"),
        (
            "a.json",
            '[{"edge_index": [[0], [1]], "x": [1, 2]}, {"edge_index": [[0], [1]]}]',
            "graph 1 has no x, which graph 0 has",
        ),
        ("a.json", '{"version": 9, "graphs": []}', "has version 9; this lspe reads version 1"),
        ("a.json", '{"level": "planet", "graphs": [{"edge_index": [[], []], "num_nodes": 1}]}', "level is 'planet'"),
        ("a.npz", "no zip", "a.npz is damaged or not a file of graphs"),
        ("a.parquet", "no parquet", "a.parquet is damaged or not a file of graphs"),
        ("a.txt", "", r"a.txt: graphs are read from files that end in \.npz"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_graphs(tmp_path / name)


def test_what_is_wrong_with_arrays_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    good = {"num_nodes": [2], "num_edges": [1], "edge_index": [[0], [1]]}
    for changes, message in (
        ({"num_nodes": None}, "no array 'num_nodes'"),
        ({"num_edges": [2]}, r"edge_index has shape \[2, 1\] and num_edges \[1\] adds up to 2"),
        ({"x": [1, 2]}, "'x' says not what it belongs to: call it node/x"),
        ({"node/x": [1, 2, 3]}, "node/x has 3 rows for 2 nodes"),
        (
            {"node/x": np.array([{}, {}], dtype=object)},
            "damaged or not a file of graphs: Object arrays cannot be loaded",
        ),
    ):
        np.savez(path, **{name: value for name, value in {**good, **changes}.items() if value is not None})
        with pytest.raises(DataError, match=message):
            read_graphs(path)
    with pytest.raises(DataError, match="no such file or folder"):
        read_graphs(tmp_path / "none.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no files of graphs"):
        read_graphs(tmp_path / "empty")
    with pytest.raises(DataError, match=r"a name that ends in \.npz, \.parquet, \.json"):
        save_graphs(tmp_path / "graphs.pt", ring(3))
    assert not (tmp_path / "graphs.pt").exists()


def test_pygs_sets_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two graphs in TUDataset's layout, where PyG looks before it downloads."""
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path))
    raw = tmp_path / "pyg" / "TUDataset" / "TINY" / "raw"
    raw.mkdir(parents=True)
    (raw / "TINY_A.txt").write_text("1, 2\n2, 1\n3, 4\n4, 3\n4, 5\n5, 4\n")
    (raw / "TINY_graph_indicator.txt").write_text("1\n1\n2\n2\n2\n")
    (raw / "TINY_graph_labels.txt").write_text("1\n-1\n")
    (raw / "TINY_node_labels.txt").write_text("0\n1\n0\n1\n1\n")
    stored = read_named("pyg:TUDataset/TINY")
    assert [graph.num_nodes for graph in stored.graphs] == [2, 3]
    assert [graph.y.tolist() for graph in stored.graphs] == [[1], [0]]
    club = read_named("pyg:KarateClub")
    data = from_pyg(club.graphs)
    assert (data.level, data.divided, data.num_outputs) == ("node", "targets", 4)
    with pytest.raises(DataError, match=r"no data set 'TUDatset'; did you mean pyg:TUDataset\?"):
        read_named("pyg:TUDatset/MUTAG")
    with pytest.raises(DataError, match="holds several sets: write pyg:TUDataset/NAME"):
        read_named("pyg:TUDataset")
    with pytest.raises(DataError, match="KarateClub has no name to choose by"):
        read_named("pyg:KarateClub/x")


def test_an_archive_that_seems_locked_newer_or_badly_compressed_is_refused_in_words(tmp_path: Path) -> None:
    save_graphs(tmp_path / "sound.npz", [ring(4), ring(5)])
    sound = (tmp_path / "sound.npz").read_bytes()
    entry, directory = sound.index(b"PK\x03\x04"), sound.index(b"PK\x01\x02")
    for changes in (
        {entry + 6: 1, directory + 8: 1},  # the flag for a password
        {directory + 6: 99},  # the version of zip that is needed
        dict.fromkeys(range(entry + 80, entry + 120), 0xFF),
    ):
        damaged = bytearray(sound)
        for place, value in changes.items():
            damaged[place] = value
        (tmp_path / "damaged.npz").write_bytes(damaged)
        with pytest.raises(DataError, match=r"damaged\.npz is damaged or not a file of graphs"):
            read_graphs(tmp_path / "damaged.npz")
