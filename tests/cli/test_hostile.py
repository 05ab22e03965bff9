"""Whatever a command line and its files hold: words and a code, never a traceback."""

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from lspe.cli import main
from lspe.training import checkpoint
from tests.small import TINY, write_table

SETTINGS = [argument for setting in TINY for argument in ("--set", setting)]
NETWORK = ["own/gatedgcn-lspe"]
SMALL = ["--epochs", "1", "--threads", "1", "--device", "cpu", *SETTINGS]
LONG = "x" * 300
Said = Callable[..., tuple[int, str]]


@pytest.fixture
def lspe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command as the shell does: its code, and what it wrote to the standard error."""
    monkeypatch.setenv("LSPE_DEBUG", "")

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["lspe", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main.run()
        return int(end.value.code or 0), capsys.readouterr().err

    return run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with tables, and in ``run`` and ``other`` two runs of different tasks and widths."""
    folder = tmp_path_factory.mktemp("hostile")
    write_table(folder / "table.csv")
    write_table(folder / "classes.csv", "multiclass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LSPE_CACHE", str(folder / "cache"))
        for name, table, width in (("run", "table", 16), ("other", "classes", 20)):
            arguments = ["train", *NETWORK, "--data", f"{folder / table}.csv", "--out", str(folder / name), *SMALL]
            patch.setattr(sys, "argv", ["lspe", *arguments, "--set", f"model.hidden_dim={width}"])
            with pytest.raises(SystemExit) as end:
                main.run()
            assert not end.value.code
        yield folder


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a copy of a run, a table, and things that are not what they seem."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained / "run", "run")
    shutil.copy(trained / "table.csv", "table.csv")
    Path("loop").symlink_to("loop")
    for ending in ("csv", "yaml", "json"):
        Path(f"loop.{ending}").symlink_to(f"loop.{ending}")
    shutil.copy("table.csv", "text.parquet")
    Path("binary.yaml").write_bytes(bytes(range(256)))
    Path("latin.yaml").write_bytes("name: Löslichkeit".encode("latin-1"))
    Path("deep.yaml").write_text("a: " + "[" * 100_000)
    Path("deep.json").write_text("[" * 100_000)
    Path("deep.gml").write_text("graph [ " + "a [ " * 50_000)
    Path("unheard.graphml").write_text("<?xml version='1.0' encoding='utf-K'?><graphml/>")
    Path("list.json").write_text("[1, 2]")
    Path("weight.json").write_text(
        json.dumps({"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1, "weight": "heavy"}]})
    )
    Path("weight.gml").write_text('graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 weight "heavy" ] ]')
    return tmp_path


COMMANDS = [
    (["train", "--device", "cuda"], "there is no device 'cuda' here; there is: cpu"),
    (["train", "--device", "mps"], "there is no device 'mps' here; there is: cpu"),
    (["predict", "run", "--smiles", "CCO", "--device", "cuda:x"], "there is no device 'cuda:x' here"),
    (["train", "--seed", "-1"], "--seed: seed: Input should be greater than or equal to 0 (got -1)"),
    (["train", "--seed", 10**20], "--seed: seed: Input should be less than"),
    (["train", "--set", "seed=-1"], "--set: seed: "),
    (["train", "--set", "model.lspe=false"], "model.gatedgcn: final='structure+position' needs lspe=True"),
    (["train", "--set", "model.layers=["], "--set model.layers=[: not YAML"),
    (["train", "--set", "model.encoding=none"], "need an encoding to start from"),
    (["train", "binary.yaml"], "binary.yaml: not YAML"),
    (["train", "latin.yaml"], "latin.yaml: not YAML in UTF-8"),
    (["train", "deep.yaml"], "deep.yaml: not an experiment"),
    (["train", "loop.yaml"], "loop.yaml: there is no such file"),
    (["train", LONG], "unknown preset 'xxx"),
    (["train", f"{LONG}.yaml"], "there is no such file"),
    (["train", "."], "is a folder without config.yaml"),
    (["train", ""], "is a folder without config.yaml"),
    (["train", "--data", "text.parquet"], "text.parquet is not a Parquet file"),
    (["train", "--data", "loop.csv"], "loop.csv cannot be read: Too many levels of symbolic links"),
    (["train", "--data", f"{LONG}.csv"], "cannot be read: File name too long"),
    (["train", "--data", "table.csv", *SMALL, "--out", "table.csv"], "table.csv cannot be used as a run folder"),
    (["train", "--data", "table.csv", *SMALL, "--out", "loop"], "loop cannot be used as a run folder"),
    (["train", "--data", "table.csv", *SMALL, "--init-from", LONG], "there is no such run folder"),
    (["predict", "run", "text.parquet"], "text.parquet is not a Parquet file"),
    (["predict", "run", LONG], "cannot be read: File name too long"),
    (["predict", LONG, "--smiles", "CCO"], "there is no such run folder"),
    (["predict", "run", "table.csv", "-o", "a.parquet", "--embeddings", "./a.parquet"], "cannot go to one file"),
    (["predict", "run", "table.csv", "-o", f"{LONG}.csv"], "File name too long"),
    (["predict", "run", "table.csv", "-o", "table.csv/a.csv"], "there is no folder table.csv"),
    (["evaluate", LONG], "there is no such run folder"),
    (["explore", "loop", "--no-browser"], "loop: there is no such run folder"),
    (["encode", "deep.json", "-o", "a.npz"], "deep.json is not a .json graph"),
    (["encode", "deep.gml", "-o", "a.npz"], "deep.gml is not a .gml graph"),
    (["encode", "unheard.graphml", "-o", "a.npz"], "unheard.graphml is not a .graphml graph: unknown encoding: utf-K"),
    (["encode", "list.json", "-o", "a.npz"], "list.json: expected an object"),
    (["encode", "weight.json", "-o", "a.npz"], "weight.json, edge 0 to 1: the weight 'heavy' is not a number"),
    (["encode", "weight.gml", "-o", "a.npz"], "weight.gml, edge 0 to 1: the weight 'heavy' is not a number"),
    (["encode", "loop.json", "-o", "a.npz"], "loop.json cannot be read"),
    (["compare", "weight.gml", "CCO"], "the weight 'heavy' is not a number"),
    (["compare", "C" * 300, "("], "'(' is not a SMILES string"),
    (["compare", "C", "CC", "--picture", "a.txt"], "ends in .png or .svg"),
    (["compare", "C", "CC", "--picture", "table.csv/a.png"], "table.csv cannot be used as a folder: it is a file"),
    (["data", "info", "table.csv", "--picture", "a.txt"], "ends in .png or .svg"),
    (["data", "info", "table.csv", "--picture", "loop/a.png"], "loop cannot be used as a folder"),
    (["data", "info", LONG], "there is no data set"),
    (["plot", "decalin", "--out", "table.csv"], "table.csv cannot be used as a folder: it is a file"),
    (["plot", "k-study", "binary.yaml"], "binary.yaml is not a table of a study of k"),
    (["plot", "curves", LONG], "there is no such run folder"),
]


@pytest.mark.parametrize("arguments, words", COMMANDS, ids=lambda one: one if isinstance(one, str) else " ")
def test_a_command_that_cannot_be_says_why(here: Path, lspe: Said, arguments: list[object], words: str) -> None:
    table = (here / "table.csv").read_bytes()
    code, error = lspe(*arguments)
    assert (code, error.partition(" ")[0]) == (2, "error:"), error
    assert words in error
    assert "Traceback" not in error
    assert (here / "table.csv").read_bytes() == table


RING = f"C1{'C' * 19_998}C1"
CHAIN = "C" * 1_000_000


@pytest.fixture
def monsters(here: Path) -> list[str]:
    """A table in which molecules stand that RDKit cannot stand."""
    smiles = ["CCO", RING, "CCN", CHAIN, "CCC"]
    Path("monsters.csv").write_text("smiles,y\n" + "".join(f"{one},{row}\n" for row, one in enumerate(smiles)))
    return smiles


def test_a_monstrous_molecule_costs_predict_and_encode_only_its_row(monsters: list[str], lspe: Said) -> None:
    import pandas as pd

    assert lspe("predict", "run", "monsters.csv", "-o", "predicted.csv")[0] == 0
    predicted = pd.read_csv("predicted.csv")
    assert predicted["smiles"].tolist() == monsters
    assert predicted["y_predicted"].notna().tolist() == [True, False, True, False, True]
    assert predicted["reason"][1] == "has 20,002 characters; at most 20,000 are read"
    assert lspe("encode", "monsters.csv", "-o", "a.parquet")[0] == 0
    encoded = pd.read_parquet("a.parquet").groupby("molecule", sort=True)
    assert encoded["reason"].first().notna().tolist() == [False, True, False, True, False]
    assert encoded["atom"].count().tolist() == [3, 0, 3, 0, 3]


def test_a_monstrous_molecule_is_named_with_its_row_before_training(monsters: list[str], lspe: Said) -> None:
    with Path("table.csv").open("a") as table:
        table.write(f"{RING},1\n")
    code, error = lspe("train", *NETWORK, "--data", "table.csv", "--out", "new", *SMALL)
    assert code == 2
    assert "row 42, column 'smiles': 'C1CC" in error
    assert "has 20,002 characters; at most 20,000 are read" in error
    assert len(error) < 500
    code, error = lspe("train", *NETWORK, "--data", "table.csv", "--out", "new", *SMALL, "--on-invalid", "skip")
    assert code == 0, error


def test_a_picture_may_go_to_a_new_folder(here: Path, lspe: Said) -> None:
    assert lspe("data", "info", "table.csv", "--picture", "new/one/a.png")[0] == 0
    assert (here / "new" / "one" / "a.png").stat().st_size > 1000


def test_a_port_that_may_not_be_had_is_named(here: Path, lspe: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    code, error = lspe("explore", "--port", 80, "--no-browser")
    assert code == 2
    assert "port 80 cannot be had (Permission denied)" in error


def of_other_run(path: Path, other: Path) -> None:
    shutil.copy(other / path.name, path)


def as_bytes(path: Path, _: Path) -> None:
    path.write_bytes(bytes(range(256)) * 9)


def cut(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def nested(path: Path, _: Path) -> None:
    path.write_text("[" * 100_000)


def without_values(path: Path, _: Path) -> None:
    values = json.loads(path.read_text())
    path.write_text(json.dumps({key: value if key == "format" else None for key, value in values.items()}))


def words_among_numbers(path: Path, _: Path) -> None:
    path.write_text(path.read_text() + "many,few\n")


def a_row_too_long(path: Path, _: Path) -> None:
    path.write_text(path.read_text() + ",".join("123456789") + "\n")


def no_state(path: Path, _: Path) -> None:
    torch.save({"format": checkpoint.FORMAT}, path)


def other_weights(path: Path, _: Path) -> None:
    state = checkpoint.load(path)
    checkpoint.save(path, {**state, "network": {"a": torch.zeros(1)}, "average": None})


def no_optimizer(path: Path, _: Path) -> None:
    state = checkpoint.load(path)
    checkpoint.save(
        path, {**state, "epoch": 0, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1, "params": []}]}}
    )


DAMAGES = {
    "last.ckpt": [as_bytes, cut, of_other_run, no_state, other_weights, no_optimizer],
    "interface.json": [as_bytes, cut, of_other_run, nested, without_values],
    "summary.json": [as_bytes, cut, nested, without_values],
    "metrics.csv": [as_bytes, of_other_run, words_among_numbers, a_row_too_long],
    "config.yaml": [as_bytes, of_other_run, nested],
}
USES = {
    "predict": ["predict", "run", "--smiles", "CCO"],
    "evaluate": ["evaluate", "run"],
    "explore": ["explore", "run", "--no-browser", "--port", "0"],
    "resume": ["train", "run", "--resume"],
    "init-from": ["train", *NETWORK, "--data", "table.csv", *SMALL, "--out", "new", "--init-from", "run"],
    "curves": ["plot", "curves", "run"],
}
READ_BY = {
    "last.ckpt": ["predict", "evaluate", "explore", "resume", "init-from"],
    "interface.json": ["predict", "evaluate", "explore", "resume"],
    "summary.json": ["resume"],
    "metrics.csv": ["resume", "curves"],
    "config.yaml": list(USES),
}
DAMAGED = [
    (name, damage, use)
    for name, damages in DAMAGES.items()
    for damage in damages
    for use in (["resume"] if damage is no_optimizer else READ_BY[name])
]


@pytest.mark.parametrize("name, damage, use", DAMAGED, ids=lambda one: getattr(one, "__name__", one))
def test_a_run_folder_with_a_damaged_file_is_refused_in_words(
    here: Path, trained: Path, lspe: Said, name: str, damage: Callable[[Path, Path], None], use: str
) -> None:
    damage(here / "run" / name, trained / "other")
    code, error = lspe(*USES[use])
    assert "Traceback" not in error
    assert (code, error.partition(" ")[0]) == (2, "error:"), error
    assert str(Path("run")) in error


BLENDED = [
    (name, damage, use)
    for name, damages in {
        "blend.json": [as_bytes, cut, nested, without_values],
        "forest.lspe": [as_bytes, cut],
        "network0/best.ckpt": [as_bytes, cut],
        "network1/config.yaml": [as_bytes],
    }.items()
    for damage in damages
    for use in ("predict", "evaluate", "explore")
]


@pytest.fixture(scope="module")
def blended(trained: Path) -> Path:
    """Two networks and a forest that predict as one."""
    with pytest.MonkeyPatch.context() as patch:
        arguments = ["train", "--data", str(trained / "table.csv"), "--out", str(trained / "blended"), *SMALL]
        patch.setattr(sys, "argv", ["lspe", *arguments, "--members", "2"])
        with pytest.raises(SystemExit) as end:
            main.run()
        assert not end.value.code
    return trained / "blended"


@pytest.mark.parametrize("name, damage, use", BLENDED, ids=lambda one: getattr(one, "__name__", one))
def test_several_networks_and_a_forest_with_a_damaged_file_are_refused_in_words(
    here: Path, blended: Path, lspe: Said, name: str, damage: Callable[[Path, Path], None], use: str
) -> None:
    shutil.rmtree(here / "run")
    shutil.copytree(blended, here / "run")
    damage(here / "run" / name, blended)
    code, error = lspe(*USES[use])
    assert "Traceback" not in error
    assert (code, error.partition(" ")[0]) == (2, "error:"), error
    assert str(Path("run")) in error


def test_a_table_that_was_exchanged_is_noticed(here: Path, trained: Path, lspe: Said) -> None:
    config = here / "run" / "config.yaml"
    config.write_text(config.read_text().replace("table.csv", "classes.csv"))
    code, error = lspe("evaluate", "run")
    assert code == 2
    assert (
        "run was trained on a regression task of graphs with 1 outputs, but classes.csv is now a multiclass task of "
        "graphs with 3" in error
    )


def test_our_own_bug_is_one_line_and_its_traceback_is_to_be_had(lspe: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise KeyError("missing piece")

    monkeypatch.setattr("lspe.experiment.list_presets", broken)
    code, error = lspe("presets")
    assert (code, error) == (
        1,
        "error: a bug in lspe: KeyError: 'missing piece'. Please report it; lspe --debug shows where it happened\n",
    )
    code, error = lspe("--debug", "presets")
    assert code == 1
    assert "Traceback" in error
    assert "in broken" in error
    assert os.environ["LSPE_DEBUG"] == "1"
    monkeypatch.setattr("lspe.experiment.list_presets", lambda: [LONG])
    code, error = lspe("presets")
    assert code == 2
    assert "Traceback" in error
    assert "error: unknown preset" in error.splitlines()[-1]
