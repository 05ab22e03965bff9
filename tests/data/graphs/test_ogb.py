"""Archives of OGB: graphs with labels, one graph with labels of nodes, as zip files and as folders."""

import gzip
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from lspe.data import DataError, from_pyg, read_graphs
from lspe.data.graphs.named import read_named
from lspe.data.graphs.recognition import is_stored_graphs
from lspe.data.graphs.storage import files_of
from lspe.experiment import GraphSource
from lspe.training import Run
from tests.cli.test_train import lspe

pytestmark = pytest.mark.usefixtures("session_cache", "one_thread", "ordinary_ctrl_c")

SMALL = ["--set", "model.layers=2", "--set", "model.hidden_dim=16", "--set", "model.k=4", "--epochs", "2"]
Tables = dict[str, list[list[object]]]


def molecules(count: int = 30) -> Tables:
    """Paths of 2, 3 and 4 atoms in OGB's features; two yes/no labels, some of them missing."""
    sizes = [2 + number % 3 for number in range(count)]
    atoms = [[5 + number % 2, 0, 4, 5, 3, 0, 2, 0, 0] for number, size in enumerate(sizes) for _ in range(size)]
    bonds = [[place, place + 1] for size in sizes for place in range(size - 1)]
    return {
        "raw/num-node-list": [[size] for size in sizes],
        "raw/num-edge-list": [[size - 1] for size in sizes],
        "raw/node-feat": atoms,
        "raw/edge": bonds,
        "raw/edge-feat": [[number % 2, 0, 1] for number in range(len(bonds))],
        "raw/graph-label": [
            [number % 2, "" if number % 5 == 0 else int(size > 2)] for number, size in enumerate(sizes)
        ],
        "split/scaffold/train": [[number] for number in range(20)],
        "split/scaffold/valid": [[number] for number in range(20, 25)],
        "split/scaffold/test": [[number] for number in range(25, 30)],
    }


def papers(nodes: int = 40) -> Tables:
    """A ring of papers with two numbers each and one of three classes."""
    return {
        "raw/num-node-list": [[nodes]],
        "raw/num-edge-list": [[nodes]],
        "raw/node-feat": [[node / 10, -node / 7] for node in range(nodes)],
        "raw/node_year": [[2000 + node % 5] for node in range(nodes)],
        "raw/edge": [[node, (node + 1) % nodes] for node in range(nodes)],
        "raw/node-label": [[node % 3] for node in range(nodes)],
        "split/time/train": [[node] for node in range(0, nodes, 2)],
        "split/time/valid": [[node] for node in range(1, nodes, 4)],
        "split/time/test": [[node] for node in range(3, nodes, 4)],
    }


def packed(rows: list[list[object]]) -> bytes:
    return gzip.compress("".join(f"{','.join(map(str, row))}\n" for row in rows).encode())


def write_zip(path: Path, tables: Mapping[str, list[list[object]]], top: str = "set/") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{top}mapping/README.md", "of no use here")
        archive.writestr(f"{top}RELEASE_v1.txt", "")
        for name, rows in tables.items():
            archive.writestr(f"{top}{name}.csv.gz", packed(rows))
    return path


def write_folder(path: Path, tables: Mapping[str, list[list[object]]]) -> Path:
    for name, rows in tables.items():
        file = path / f"{name}.csv.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(packed(rows))
    (path / "processed").mkdir()
    return path


def test_graphs_with_labels(tmp_path: Path) -> None:
    stored = read_graphs(write_zip(tmp_path / "mols.zip", molecules()))
    assert (len(stored.graphs), stored.level) == (30, "graph")
    assert {name: part.tolist() for name, part in (stored.splits or {}).items()} == {
        "train": list(range(20)),
        "val": list(range(20, 25)),
        "test": list(range(25, 30)),
    }
    third = stored.graphs[2]
    assert third.x.tolist() == [[5, 0, 4, 5, 3, 0, 2, 0, 0]] * 4
    assert third.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    assert third.edge_attr.tolist() == [[1, 0, 1], [1, 0, 1], [0, 0, 1], [0, 0, 1], [1, 0, 1], [1, 0, 1]]
    assert third.y.tolist() == [[0.0, 1.0]]
    assert stored.graphs[5].y[0, 1].isnan()
    data = from_pyg(stored.graphs, level=stored.level, splits=stored.splits)
    assert (data.task, data.num_outputs, data.features.kind, data.level) == ("binary", 2, "ogb", "graph")


def test_one_graph_with_labels_of_nodes(tmp_path: Path) -> None:
    stored = read_graphs(write_folder(tmp_path / "ogbn_papers", papers()))
    [graph] = stored.graphs
    assert (stored.level, graph.num_nodes, graph.num_edges) == ("node", 40, 80)
    np.testing.assert_allclose(graph.x[7], [0.7, -1.0])
    data = from_pyg(stored.graphs, level=stored.level, splits=stored.splits)
    assert (data.task, data.num_outputs, data.divided) == ("multiclass", 3, "targets")
    assert data.splits["val"].tolist() == list(range(1, 40, 4))


def test_labels_that_are_missing_numbers_and_classes(tmp_path: Path) -> None:
    tables = papers()
    tables["raw/node-label"][3] = [""]
    [graph] = read_graphs(write_zip(tmp_path / "classes.zip", tables)).graphs
    assert (graph.y.dtype, graph.y[:5, 0].tolist()) == (torch.int64, [0, 1, 2, -1, 1])
    tables["raw/node-label"] = [[node % 2, 1] for node in range(40)]
    [graph] = read_graphs(write_zip(tmp_path / "labels.zip", tables)).graphs
    assert from_pyg(graph, level="node").task == "binary"
    tables = molecules()
    tables["raw/graph-label"] = [[number / 4] for number in range(30)]
    stored = read_graphs(write_zip(tmp_path / "numbers.zip", tables))
    assert from_pyg(stored.graphs, level="graph").task == "regression"


def test_without_features_and_divisions(tmp_path: Path) -> None:
    tables = {name: rows for name, rows in papers().items() if "feat" not in name and "split" not in name}
    stored = read_graphs(write_zip(tmp_path / "bare.zip", tables))
    assert stored.splits is None
    data = from_pyg(stored.graphs, level="node")
    assert (data.features.kind, sorted(data.splits)) == ("none", ["test", "train", "val"])


def test_edges_in_both_directions_are_left_as_they_are(tmp_path: Path) -> None:
    tables = papers(6)
    tables["raw/edge"] += [[target, source] for source, target in tables["raw/edge"]]
    tables["raw/num-edge-list"] = [[12]]
    [graph] = read_graphs(write_zip(tmp_path / "both.zip", tables)).graphs
    assert sorted(graph.edge_index.T.tolist()) == sorted(tables["raw/edge"])


@pytest.mark.parametrize(
    ("name", "file"),
    [("ogbn-arxiv", "arxiv.zip"), ("ogbg-molhiv", "hiv.zip"), ("ogbn-arxiv", "ogbn-arxiv.zip"), ("ogbn-x", "ogbn_x")],
)
def test_sets_by_name(name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSPE_DATA", str(tmp_path))
    write = write_zip if file.endswith(".zip") else write_folder
    write(tmp_path / file, papers())
    assert len(read_named(f"ogb:{name}").graphs) == 1


def test_a_set_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSPE_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"put hiv\.zip there \(https://.*/graphproppred/csv_mol_download/hiv\.zip\)"):
        read_named("ogb:ogbg-molhiv")
    with pytest.raises(DataError, match=r"put arxiv\.zip there \(https://.*/nodeproppred/arxiv\.zip\)"):
        read_named("ogb:ogbn-arxiv")
    with pytest.raises(DataError, match="are called ogbg-NAME and ogbn-NAME"):
        read_named("ogb:arxiv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"raw/edge": None}, "raw/edge.csv.gz is missing"),
        ({"raw/node-label": None}, "not one of raw/graph-label.csv.gz and raw/node-label.csv.gz"),
        ({"raw/node-label": [[0]] * 39}, "raw/node-label.csv.gz has 39 rows for 40 nodes"),
        ({"raw/node-feat": [[0.5]] * 41}, "raw/node-feat.csv.gz has 41 rows for 40 nodes"),
        ({"raw/edge-feat": [[0.5]] * 41}, "raw/edge-feat.csv.gz has 41 rows for 40 edges"),
        ({"raw/edge": [["a", 1]] * 40}, "raw/edge.csv.gz holds 'a', which is no number"),
        ({"raw/edge": [[0.5, 1]] * 40}, "raw/edge.csv.gz does not hold whole numbers"),
        ({"raw/num-node-list": None}, "has no raw/num-node-list.csv.gz"),
        ({"split/time/valid": None}, "has no split/time/valid.csv.gz"),
        ({"split/time/valid": [[40]]}, "split/time/valid.csv.gz numbers 40, but the labels are 0 to 39"),
        ({"split/time/valid": [[0]]}, "split/time has a number twice"),
        ({"split/random/train": [[0]]}, r"several divisions \(random, time\): leave one"),
        ({"raw/triplet-type-list": [[0]]}, "holds nodes and edges of several types"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, list[list[object]] | None], message: str, tmp_path: Path) -> None:
    tables = {name: rows for name, rows in {**papers(), **change}.items() if rows is not None}
    with pytest.raises(DataError, match=message):
        read_graphs(write_zip(tmp_path / "set.zip", tables))


def test_damaged_archives_are_said(tmp_path: Path) -> None:
    whole = write_zip(tmp_path / "set.zip", papers())
    (tmp_path / "cut.zip").write_bytes(whole.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"cut\.zip is damaged"):
        read_graphs(tmp_path / "cut.zip")
    folder = write_folder(tmp_path / "folder", papers())
    edges = folder / "raw" / "edge.csv.gz"
    edges.write_bytes(edges.read_bytes()[:20])
    with pytest.raises(DataError, match="folder is damaged"):
        read_graphs(folder)


def test_a_changed_folder_is_read_anew(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "mine", papers())
    assert is_stored_graphs(folder)
    assert {file.name for file in files_of(folder)} >= {"edge.csv.gz", "train.csv.gz"}
    assert GraphSource(path=str(folder)).load().num_outputs == 3
    (folder / "raw" / "node-label.csv.gz").write_bytes(packed([[node % 5] for node in range(40)]))
    assert GraphSource(path=str(folder)).load().num_outputs == 5


@pytest.mark.parametrize("kind", ["zip of graphs", "folder of nodes", "name"])
def test_from_the_command_line(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "folder of nodes":
        source = str(write_folder(tmp_path / "papers", papers()))
    else:
        source = str(write_zip(tmp_path / "hiv.zip", molecules()))
    if kind == "name":
        monkeypatch.setenv("LSPE_DATA", str(tmp_path))
        source = "ogb:ogbg-molhiv"
    lspe("train", "--data", source, "--out", tmp_path / "run", *SMALL)
    run = Run.open(tmp_path / "run")
    nodes = kind == "folder of nodes"
    assert run.summary["level"] == ("node" if nodes else "graph")
    assert run.summary["targets"] == (
        {"train": 20, "val": 10, "test": 10} if nodes else {"train": 20, "val": 5, "test": 5}
    )
    scores = json.loads(lspe("evaluate", tmp_path / "run", "--json"))["run"]
    assert scores == pytest.approx(run.summary["reported"]["test"])
    lspe("predict", tmp_path / "run", source, "-o", tmp_path / "out.csv")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + (40 if nodes else 30)
