"""The front door: ``lspe.train`` for whatever one has, and all public names as a type checker sees them."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import lspe
from lspe import sources
from lspe.errors import UserError
from lspe.experiment import read_experiment
from lspe.training.seeds_and_folds import evaluate_runs
from tests.graphs import ring

SMALL = {"model.layers": 2, "model.hidden_dim": 16, "training.batch_size": 16}


def rings(count: int) -> list[Data]:
    """Rings of 3 to 8 nodes with random features; the target is the size of the ring and the sum of the features."""
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(count):
        size = 3 + number % 6
        one_way = torch.tensor(ring(size)).T
        x = torch.randn(size, 2, generator=generator)
        edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
        graphs.append(Data(x=x, edge_index=edge_index, y=torch.tensor([[size + float(x.sum())]])))
    return graphs


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "chains.csv"
    lines = [f"{'C' * n}O,{n}" for n in range(1, 41)] + ["not a molecule,3"]
    path.write_text("smiles,carbons\n" + "\n".join(lines) + "\n")
    return path


def test_a_table(table: Path, tmp_path: Path) -> None:
    """The files are those of the command line."""
    run = lspe.train(table, out=tmp_path / "run", on_invalid="skip", epochs=2, settings=SMALL)
    assert isinstance(run, lspe.Run)
    files = {path.name for path in run.path.iterdir()}
    assert files >= {"config.yaml", "rows.csv", "predictions.csv", "curves.png", "parity.png", "summary.json"}
    assert lspe.load(run.path).predict(["CCO", "CCCO"]).shape == (2,)
    command = [sys.executable, "-m", "lspe", "train", "--data", str(table), "--out", str(tmp_path / "cli")]
    settings = [f"--set={place}={value}" for place, value in SMALL.items()]
    subprocess.run([*command, "--on-invalid", "skip", "--epochs", "2", *settings], check=True, capture_output=True)
    assert {path.name for path in (tmp_path / "cli").iterdir()} == files
    assert (tmp_path / "cli" / "predictions.csv").read_text() == (run.path / "predictions.csv").read_text()


def test_a_large_table_is_learned_without_descriptors(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "LARGE_TABLE", 40)
    options: Any = {"on_invalid": "skip", "epochs": 1, "settings": SMALL}
    run = lspe.train(table, out=tmp_path / "large", **options)
    assert (run.config.model.beside, run.config.training.forest) == ("none", False)
    monkeypatch.setattr(sources, "LARGE_TABLE", 41)
    run = lspe.train(table, out=tmp_path / "small", **options)
    assert (run.config.model.beside, run.config.training.forest) == ("rdkit", True)


def test_graphs_of_pyg(tmp_path: Path) -> None:
    """A run on graphs that were in memory goes on, is evaluated and predicts, wherever its folder is moved."""
    graphs = rings(60)
    run = lspe.train(graphs, out=tmp_path / "run", epochs=2, settings=SMALL)
    assert {"graphs.lspe", "predictions.csv"} <= {path.name for path in run.path.iterdir()}
    assert read_experiment(str(run.path)).graphs.path == str(tmp_path / "run" / "graphs.lspe")
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    shutil.move(run.path, moved)
    [scores] = evaluate_runs(moved, "test").values()
    assert scores["mae"] == pytest.approx(lspe.Run.open(moved).summary["reported"]["test"]["mae"])
    predicted = lspe.load(moved).predict(graphs[:4])
    assert predicted.shape == (4,)
    assert np.isfinite(predicted).all()


def test_graphs_of_pyg_resume_exactly(tmp_path: Path) -> None:
    settings = {**SMALL, "model.k": 4}
    whole = lspe.train(rings(40), out=tmp_path / "whole", preset="zinc/gatedgcn-lspe", epochs=3, settings=settings)
    lspe.train(rings(40), out=tmp_path / "parts", preset="zinc/gatedgcn-lspe", epochs=2, settings=settings)
    parts = lspe.train(tmp_path / "parts", epochs=3, resume=True)
    assert parts.history[-1]["val_mae"] == whole.history[-1]["val_mae"]


def test_an_experiment_a_preset_and_a_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    experiment = read_experiment("nci/gatedgcn-lspe")
    first = lspe.train(experiment, out="first", epochs=1, settings=SMALL)
    second = lspe.train("nci/gatedgcn-lspe", epochs=1, settings=[f"{k}={v}" for k, v in SMALL.items()], seeds=[41])
    assert second.path == Path("runs/nci-gatedgcn-lspe-seed41")
    assert first.summary["reported"] == second.summary["reported"]
    again = lspe.train(first.path, out="again")
    assert again.summary["reported"] == first.summary["reported"]
    with pytest.raises(UserError, match="says itself what to train"):
        lspe.train("nci/gatedgcn-lspe", preset="zinc/pna")


TYPED = """
import lspe
from torch_geometric.data import Data

run: lspe.Run = lspe.train("table.csv", targets=["y"], epochs=3, seeds=[1, 2])
predictor: lspe.Predictor = lspe.load(run.path)
names: list[str] = lspe.list_presets()
network: lspe.Network = lspe.build_network(names[0])
layer = lspe.GatedGCN(64, lspe=True)
transform = lspe.RandomWalkEncoding(k=16)
table = lspe.read_table("table.csv", targets="y")
reveal_type(table)
"""


def mypy(program: str, tmp_path: Path) -> str:
    (tmp_path / "program.py").write_text(program)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "pyproject.toml",
        str(tmp_path / "program.py"),
    ]
    return subprocess.run(command, cwd=Path(__file__).parent.parent, capture_output=True, text=True).stdout


def test_a_type_checker_sees_the_names(tmp_path: Path) -> None:
    seen = mypy(TYPED, tmp_path)
    assert 'Revealed type is "lspe.data.table.table.Table"' in seen
    assert "error:" not in seen
    wrong = mypy('import lspe\nlspe.no_such_name\nlspe.train("t.csv", epochs="many")\n', tmp_path)
    assert 'Module has no attribute "no_such_name"' in wrong
    assert 'Argument "epochs" to "train" has incompatible type "str"' in wrong


def test_every_public_name_is_there() -> None:
    for name in lspe.__all__:
        assert getattr(lspe, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        lspe.no_such_name  # noqa: B018
