"""Own graphs from the command line, at every level: train, kill, go on, evaluate, predict."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import lspe as package
from lspe.data import save_graphs
from lspe.errors import UserError
from lspe.training import Run
from tests.cli.test_train import lspe
from tests.levels import SMALL, edges_of, many_graphs, one_graph
from tests.small import without_times

pytestmark = pytest.mark.usefixtures("session_cache", "one_thread", "ordinary_ctrl_c")

SETTINGS = [argument for place, value in SMALL.items() for argument in ("--set", f"{place}={value}")]
EPOCHS = 150


def of_graphs() -> list[Data]:
    graphs = many_graphs()
    for graph in graphs:
        graph.y = graph.x.sum().reshape(1, 1)
    return graphs


SOURCES: dict[str, tuple[Callable[[], list[Data] | Data], str, str]] = {
    "graphs": (of_graphs, "parquet", "graph"),
    "nodes": (many_graphs, "json", "node"),
    "nodes of one graph": (lambda: one_graph(60), "npz", "node"),
    "nodes of a sampled graph": (lambda: one_graph(60), "npz", "node"),
    "edges": (lambda: [edges_of(graph) for graph in many_graphs()], "npz", "edge"),
}


@pytest.mark.parametrize("case", SOURCES)
def test_from_a_file_to_predictions(case: str, tmp_path: Path) -> None:
    make, kind, level = SOURCES[case]
    graphs = make()
    file = tmp_path / f"mine.{kind}"
    save_graphs(file, graphs)
    command = ["train", "--data", str(file), "--epochs", str(EPOCHS), "--threads", "1", *SETTINGS]
    if "sampled" in case:
        command += ["--set", "training.neighbours=[3, 2]", "--set", "training.nodes_per_step=5"]
    kill_after_a_checkpoint([*command, "--out", str(tmp_path / "killed")], tmp_path / "killed")
    lspe("train", tmp_path / "killed", "--resume", "--threads", 1)
    output = lspe(*command, "--out", tmp_path / "whole")
    killed, whole = Run.open(tmp_path / "killed"), Run.open(tmp_path / "whole")
    assert without_times(killed.history) == without_times(whole.history)
    assert killed.summary["reported"] == whole.summary["reported"]
    assert whole.summary["level"] == level
    assert f"to predict per {level}" in output
    assert ("each step learns from 5 nodes and a sample of their neighbourhood" in output) == ("sampled" in case)
    assert "2 numbers per node and 1 per edge" in output

    scores = json.loads(lspe("evaluate", tmp_path / "whole", "--json"))["whole"]
    assert scores == pytest.approx(whole.summary["reported"]["test"])

    lspe("predict", tmp_path / "whole", file, "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    everything = [graphs] if isinstance(graphs, Data) else graphs
    predicted = package.load(tmp_path / "whole").predict(everything)
    if level == "graph":
        assert [row["graph"] for row in rows] == [str(number) for number in range(len(everything))]
        np.testing.assert_allclose([float(row["y0_predicted"]) for row in rows], predicted, rtol=1e-4, atol=1e-4)
    else:
        names = ["graph", "node"] if level == "node" else ["graph", "source", "target"]
        places = [
            [[node] for node in range(graph.num_nodes)] if level == "node" else graph.edge_index.T.tolist()
            for graph in everything
        ]
        expected = [[number, *place] for number, of_graph in enumerate(places) for place in of_graph]
        assert [[int(row[name]) for name in names] for row in rows] == expected
        ours = [[float(row[f"y_probability_{label}"]) for label in range(3)] for row in rows]
        np.testing.assert_allclose(ours, np.concatenate(predicted), atol=1e-4)
        assert {row["y_predicted"] for row in rows} <= {"0", "1", "2"}


def kill_after_a_checkpoint(arguments: list[str], folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-m", "lspe", *arguments], stdout=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 120
        while not (folder / "last.ckpt").exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
    assert (folder / "last.ckpt").exists()


def test_a_folder_with_parts_and_a_run_that_moves(tmp_path: Path) -> None:
    graphs = many_graphs(20)
    (tmp_path / "parts").mkdir()
    for name, part in (("train", graphs[:12]), ("val", graphs[12:16]), ("test", graphs[16:])):
        save_graphs(tmp_path / "parts" / f"{name}.npz", part)
    lspe("train", "--data", tmp_path / "parts", "--out", tmp_path / "run", "--epochs", 1, *SETTINGS)
    assert Run.open(tmp_path / "run").summary["graphs"] == {"train": 12, "val": 4, "test": 4}
    (tmp_path / "run").rename(tmp_path / "moved")
    assert "accuracy" in lspe("evaluate", tmp_path / "moved")


def test_folds_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_graphs("mine.npz", many_graphs(12))
    lspe("train", "--data", "mine.npz", "--folds", 3, "--epochs", 1, *SETTINGS)
    assert sorted(path.name for path in Path("runs/mine-seed41").glob("fold*")) == ["fold0", "fold1", "fold2"]
    lspe("train", "--data", "pyg:KarateClub", "--epochs", 1, *SETTINGS)
    assert Run.open("runs/pyg-KarateClub-seed41").config.graphs.path == "pyg:KarateClub"


def test_figures_of_own_graphs(tmp_path: Path) -> None:
    save_graphs(tmp_path / "mine.npz", one_graph(60))
    figures = json.loads(lspe("data", "info", tmp_path / "mine.npz", "--json"))
    assert (figures["level"], figures["features"], figures["divided"]) == ("node", "continuous", "targets")
    save_graphs(tmp_path / "large.npz", one_graph(1200))
    with pytest.raises(UserError, match="more than 1000 nodes, too many to draw"):
        lspe("data", "info", tmp_path / "large.npz", "--picture", tmp_path / "large.png")
    lspe("data", "info", tmp_path / "mine.npz", "--picture", tmp_path / "mine.png")
    assert (tmp_path / "mine.png").stat().st_size > 1000
    assert figures["classes"] == [0, *np.bincount(one_graph(60).y[6:]).tolist()[1:]]


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    save_graphs(tmp_path / "mine.npz", many_graphs(12))
    for option in (["--target", "y"], ["--smiles-column", "s"], ["--weight-column", "w"], ["--split", "scaffold"]):
        with pytest.raises(UserError, match=r"mine\.npz holds graphs"):
            lspe("train", "--data", tmp_path / "mine.npz", *option)
    with pytest.raises(UserError, match="no such file or folder"):
        lspe("train", "--data", tmp_path / "none.npz")
    lspe("train", "--data", tmp_path / "mine.npz", "--out", tmp_path / "run", "--epochs", 1, *SETTINGS)
    others = many_graphs(3)
    for graph in others:
        graph.x = torch.cat([graph.x, graph.x], dim=1)
    save_graphs(tmp_path / "others.npz", others)
    with pytest.raises(UserError, match=r"trained on 2 numbers per node .* but the graphs have 4 numbers per node"):
        lspe("predict", tmp_path / "run", tmp_path / "others.npz")
