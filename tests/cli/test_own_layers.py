"""Convs by name and layers of one's own, from the command line and from Python: trained, gone on with, predicted."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv

import lspe
from lspe.config import ConfigError
from lspe.errors import UserError
from lspe.nn import Topology
from lspe.training import Run
from tests.cli.test_train import lspe as command
from tests.small import TINY

pytestmark = pytest.mark.usefixtures("session_cache", "one_thread", "ordinary_ctrl_c")

MODULE = """
import torch
from torch import nn

class Mine(nn.Module):
    def __init__(self, dim, slope, lspe=True):
        super().__init__()
        self.map, self.map_p, self.slope = nn.Linear(2 * dim, dim), nn.Linear(dim, dim), slope

    def forward(self, h, p, e, graph):
        h = h + nn.functional.leaky_relu(self.map(torch.cat([h, p], dim=-1)), self.slope)
        return h, p + torch.tanh(self.map_p(p)), e

class TwoStreams(Mine):
    def forward(self, h, p, e, graph):
        return h, p

class Wide(Mine):
    def forward(self, h, p, e, graph):
        return torch.cat([h, h], dim=-1), p, e
"""
OWN = ["--set", "model.name=own", "--set", "model.layer=my_layers:Mine", "--set", "model.layer_args={slope: 0.25}"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "my_layers.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("my_layers", None)


def train(table: Path, out: Path, *arguments: object) -> Run:
    settings = [word for setting in TINY for word in ("--set", setting)]
    what = ["own/gatedgcn-lspe", "--data", table, "--out", out, "--epochs", 2, "--threads", 1, *settings]
    command("train", *what, *arguments)
    return Run.open(out)


def test_a_conv_of_pyg_by_name(tables: dict[str, Path], folder: Path) -> None:
    conv = ["--set", "model.name=lspe", "--set", "model.conv=GPSConv"]
    arguments = ["--set", "model.conv_args={conv: GINEConv, heads: 2}"]
    run = train(tables["regression"], folder / "run", *conv, *arguments)
    config = yaml.safe_load((folder / "run" / "config.yaml").read_text())["model"]
    assert config["conv"] == "GPSConv"
    assert config["conv_args"] == {"conv": "GINEConv", "heads": 2}
    assert "size_norm" not in config, "which GatedGCN has, and no other"
    layer = run.network().layers[0]
    assert type(layer.conv_h.conv).__name__ == "GINEConv"
    predicted = lspe.load(folder / "run").predict(["CCO", "c1ccccc1"])
    assert np.isfinite(np.asarray(predicted)).all()


def test_a_layer_of_ones_own_is_trained_goes_on_and_predicts_later(tables: dict[str, Path], folder: Path) -> None:
    run = train(tables["regression"], folder / "run", *OWN)
    assert run.network().layers[0].slope == 0.25
    command("train", folder / "run", "--resume", "--threads", 1)
    files = [folder / "before.csv", folder / "after.csv"]
    for file in files:
        command("predict", folder / "run", "--smiles", "CCO", "-o", file)
        sys.modules.pop("my_layers")
    assert files[0].read_text() == files[1].read_text()

    (folder / "my_layers.py").rename(folder / "elsewhere.py")
    with pytest.raises(
        UserError, match=r"model\.own\.layer: my_layers:Mine: there is no module 'my_layers'.*PYTHONPATH"
    ):
        command("predict", folder / "run", "--smiles", "CCO")


@pytest.mark.parametrize(
    "settings, message",
    [
        (["model.layer=my_layers:Yours"], "my_layers.py has no 'Yours'"),
        (["model.layer=Mine"], "'Mine' is no import path: write my_module:my_part"),
        (["model.layer_args={}"], "my_layers:Mine needs 'slope': add it to model.layer_args"),
        (
            ["model.layer_args={slope: 1, depth: 2}"],
            "my_layers:Mine takes no 'depth'; it takes dim, slope, lspe",
        ),
        (["model.layer=my_layers:TwoStreams"], r"TwoStreams gives a tuple of 2, but a layer gives three.*\(h, p, e\)"),
        (["model.layer=my_layers:Wide"], r"Wide gives \[5, 32\] as h, which has to be \[5, 16\] as it was"),
        (["model.conv=GCNConv"], "unknown key 'conv'"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(
    settings: list[str], message: str, tables: dict[str, Path], folder: Path
) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    with pytest.raises(UserError, match=message):
        train(tables["regression"], folder / "run", *OWN, *words)
    assert not list(folder.glob("run/*.ckpt"))


def test_a_conv_that_is_not_there(tables: dict[str, Path], folder: Path) -> None:
    lspe_around = ["--set", "model.name=lspe"]
    with pytest.raises(UserError, match="PyTorch Geometric has no conv 'GCNConf': did you mean 'GCNConv'"):
        train(tables["regression"], folder / "run", *lspe_around, "--set", "model.conv=GCNConf")
    with pytest.raises(UserError, match="conv: Field required"):
        train(tables["regression"], folder / "run", *lspe_around)


class Still(nn.Module):
    """Leaves the streams as they are, but for a scale."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, h: Tensor, p: Tensor, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor, Tensor]:
        return h * self.scale, p, e


def test_in_python_a_class_does(tables: dict[str, Path], folder: Path) -> None:
    small = dict(setting.split("=") for setting in TINY)
    small = {place: int(value) for place, value in small.items()}
    options = {"preset": "own/gatedgcn-lspe", "epochs": 1, "threads": 1}
    own = {**small, "model.name": "own", "model.layer": Still}
    run = lspe.train(tables["regression"], out=folder / "own", settings=own, **options)
    assert run.config.model.layer == "tests.cli.test_own_layers:Still"
    wrapped = {**small, "model.name": "lspe", "model.conv": GATv2Conv, "model.conv_args": {"heads": 2}}
    run = lspe.train(tables["regression"], out=folder / "wrapped", settings=wrapped, **options)
    assert run.config.model.conv == "GATv2Conv"
    assert run.network().layers[0].conv_h.heads == 2

    class Local(Still):
        pass

    with pytest.raises(UserError, match="Local cannot be imported again from where it is: define it at the top"):
        lspe.train(tables["regression"], out=folder / "local", settings={**own, "model.layer": Local}, **options)
    with pytest.raises(UserError, match="has no import path: give a class or a function"):
        lspe.train(tables["regression"], out=folder / "x", settings={**own, "model.layer": Still(16)}, **options)


def test_another_network_keeps_what_it_has_too() -> None:
    from lspe.experiment import override, read_experiment

    old = read_experiment("zinc/gatedgcn-lspe")
    new = override(old, ["model.name=san", "model.heads=4", "model.hidden_dim=60"])
    assert (new.model.name, new.model.heads, new.model.k) == ("san", 4, old.model.k)
    with pytest.raises(ConfigError, match="unknown key 'size_norms'"):
        override(old, ["model.name=san", "model.size_norms=true"])
    with pytest.raises(ConfigError, match="unknown name 'sam'"):
        override(old, ["model.name=sam"])


def test_a_layer_of_a_notebook_is_missed_in_words() -> None:
    from lspe.own_parts import import_part

    with pytest.raises(UserError, match="has no 'Mine': it was written in a notebook or a script; define it here befo"):
        import_part("__main__:Mine")
