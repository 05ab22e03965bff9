"""Links from the command line: train, kill, go on, evaluate, predict."""

import csv
import json
from pathlib import Path

import pytest
from torch_geometric.data import Data

import lspe as package
from lspe.data import save_graphs
from lspe.errors import UserError
from lspe.training import Run
from tests.cli.test_levels import EPOCHS, kill_after_a_checkpoint
from tests.cli.test_train import lspe
from tests.levels import communities, many_graphs
from tests.small import without_times

pytestmark = pytest.mark.usefixtures("session_cache", "one_thread", "ordinary_ctrl_c")

SETTINGS = ["--set", "model.hidden_dim=16", "--set", "model.k=16"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as lines:
        return list(csv.DictReader(lines))


def test_from_a_file_to_predictions(tmp_path: Path) -> None:
    file = tmp_path / "mine.npz"
    save_graphs(file, communities(80))
    command = ["train", "--data", str(file), "--level", "link", "--epochs", str(EPOCHS), "--threads", "1", *SETTINGS]
    kill_after_a_checkpoint([*command, "--out", str(tmp_path / "killed")], tmp_path / "killed")
    lspe("train", tmp_path / "killed", "--resume", "--threads", 1)
    output = lspe(*command, "--out", tmp_path / "whole")
    killed, whole = Run.open(tmp_path / "killed"), Run.open(tmp_path / "whole")
    assert without_times(killed.history) == without_times(whole.history)
    assert killed.summary["reported"] == whole.summary["reported"]
    assert "to predict per link" in output
    assert "hits@50" in output
    assert whole.summary["reported"]["test"]["roc_auc"] > 0.8

    scores = json.loads(lspe("evaluate", tmp_path / "whole", "--json"))["whole"]
    assert scores == pytest.approx(whole.summary["reported"]["test"])
    assert "mrr" in lspe("evaluate", tmp_path / "whole", "--split", "val")

    (tmp_path / "pairs.csv").write_text("source,target\n5,1\n0,4\n7,2\n0,4\n")
    lspe("predict", tmp_path / "whole", file, "--pairs", tmp_path / "pairs.csv", "-o", tmp_path / "asked.csv")
    asked = rows_of(tmp_path / "asked.csv")
    assert [[row["graph"], row["source"], row["target"]] for row in asked] == [
        ["0", "5", "1"],
        ["0", "0", "4"],
        ["0", "7", "2"],
        ["0", "0", "4"],
    ]
    assert asked[1]["joined_probability"] == asked[3]["joined_probability"]

    lspe("predict", tmp_path / "whole", file, "--top", 7, "-o", tmp_path / "top.csv")
    pairs, likely = package.load(tmp_path / "whole").likeliest_links(communities(80), top=7)
    top = rows_of(tmp_path / "top.csv")
    assert [[int(row["source"]), int(row["target"])] for row in top] == pairs.T.tolist()
    assert [float(row["joined_probability"]) for row in top] == pytest.approx(likely.tolist(), abs=1e-5)
    lspe("predict", tmp_path / "whole", file, "-o", tmp_path / "new.csv")
    assert len(rows_of(tmp_path / "new.csv")) == 100


def test_several_graphs_that_say_their_level(tmp_path: Path) -> None:
    graphs = [communities(20 + number, groups=2, seed=number) for number in range(6)]
    save_graphs(tmp_path / "mine.json", graphs, level="link")
    lspe("train", "--data", tmp_path / "mine.json", "--out", tmp_path / "run", "--epochs", 2, *SETTINGS)
    assert Run.open(tmp_path / "run").summary["level"] == "link"
    (tmp_path / "pairs.tsv").write_text("graph\tsource\ttarget\n4\t1\t2\n0\t3\t5\n4\t0\t7\n")
    out = tmp_path / "asked.csv"
    lspe("predict", tmp_path / "run", tmp_path / "mine.json", "--pairs", tmp_path / "pairs.tsv", "-o", out)
    found = [[int(row[name]) for name in ("graph", "source", "target")] for row in rows_of(out)]
    assert found == [[0, 3, 5], [4, 1, 2], [4, 0, 7]]
    figures = json.loads(lspe("data", "info", tmp_path / "mine.json", "--json"))
    assert (figures["level"], figures["divided"]) == ("link", "targets")


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    graphs = [communities(20, groups=2, seed=seed) for seed in range(2)]
    save_graphs(tmp_path / "mine.npz", graphs)
    with pytest.raises(UserError, match=r"--level link"):
        lspe("train", "--data", tmp_path / "mine.npz")
    assert json.loads(lspe("data", "info", tmp_path / "mine.npz", "--level", "link", "--json"))["level"] == "link"
    with pytest.raises(UserError, match="targets of links; several members"):
        lspe("train", "--data", tmp_path / "mine.npz", "--level", "link", "--members", 2, "--out", tmp_path / "two")
    with pytest.raises(UserError, match="edges are divided and not graphs"):
        lspe("train", "--data", tmp_path / "mine.npz", "--level", "link", "--folds", 3)
    directed = Data(edge_index=graphs[0].edge_index[:, 1:], num_nodes=20)
    save_graphs(tmp_path / "directed.npz", directed)
    with pytest.raises(UserError, match="goes one way only"):
        lspe("train", "--data", tmp_path / "directed.npz", "--level", "link")
    run = tmp_path / "run"
    lspe("train", "--data", tmp_path / "mine.npz", "--level", "link", "--out", run, "--epochs", 1, *SETTINGS)
    for text, message in {
        "source,target\n1,2\n": r"has no column 'graph'",
        "graph,from,to\n0,1,2\n": r"has no column 'source'",
        "graph,source,target\n0,1,2\n5,1,2\n": r"pairs\.csv, row 3: there is no graph 5; 2 graphs are numbered from 0",
        "graph,source,target\n0,1,2\n1,3,20\n": r"pairs\.csv, row 3: 3 – 20, but the graph has 20 nodes",
        "graph,source,target\n0,4,4\n": r"pairs\.csv, row 2: node 4 and itself",
        "graph,source,target\n0,-1,2\n": r"pairs\.csv, row 2: source is '-1', not the number of a node",
    }.items():
        (tmp_path / "pairs.csv").write_text(text)
        with pytest.raises(UserError, match=message):
            lspe("predict", run, tmp_path / "mine.npz", "--pairs", tmp_path / "pairs.csv")
    with pytest.raises(UserError, match="choose one"):
        lspe("predict", run, tmp_path / "mine.npz", "--pairs", tmp_path / "pairs.csv", "--top", 3)
    save_graphs(tmp_path / "nodes.npz", many_graphs(12))
    lspe("train", "--data", tmp_path / "nodes.npz", "--out", tmp_path / "nodes", "--epochs", 1)
    with pytest.raises(UserError, match=r"--pairs and --top are for links, and .* predicts nodes"):
        lspe("predict", tmp_path / "nodes", tmp_path / "nodes.npz", "--top", 3)
    with pytest.raises(UserError, match="not for a table of molecules"):
        lspe("predict", tmp_path / "nodes", "--smiles", "CCO", "--top", 3)
