"""``lspe train`` and ``lspe evaluate`` as people call them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lspe.cli.main import app
from lspe.errors import UserError
from lspe.training import Run
from tests.small import TINY, without_times

pytestmark = pytest.mark.usefixtures("session_cache", "one_thread", "ordinary_ctrl_c")

SETTINGS = [argument for setting in TINY for argument in ("--set", setting)]


def lspe(*arguments: object) -> str:
    """What the command prints."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def train(table: Path, folder: Path, *arguments: object) -> str:
    network = "own/gatedgcn-lspe"
    return lspe(
        "train", network, "--data", table, "--out", folder, "--epochs", 2, "--threads", 1, *SETTINGS, *arguments
    )


@pytest.fixture(scope="module")
def run(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str]:
    folder = tmp_path_factory.mktemp("command") / "run"
    output = train(tables["regression"], folder, "--target", "y", "--seed", 3)
    return Run.open(folder), output


def test_training_ends_with_its_scores_and_leaves_a_run(run: tuple[Run, str]) -> None:
    one, output = run
    assert (one.config.seed, one.config.training.protocol.max_epochs) == (3, 2)
    assert one.config.table is not None
    assert one.config.table.targets == ("y",)
    assert f"{one.summary['reported']['test']['mae']:.4f}" in output
    assert "epoch 2/2" in output
    assert str(one.path) in output
    assert (one.path / "curves.png").stat().st_size > 1000


def test_evaluation_repeats_the_scores(run: tuple[Run, str]) -> None:
    one, _ = run
    for split in ("train", "val", "test"):
        scores = json.loads(lspe("evaluate", one.path, "--split", split, "--json"))
        assert scores["run"] == {
            name: pytest.approx(value, rel=1e-6) for name, value in one.summary["reported"][split].items()
        }
    text = lspe("evaluate", one.path, "--weights", "best")
    assert f"{one.summary['best']['test']['mae']:.4f}" in text


def test_a_run_folder_goes_on_by_itself(run: tuple[Run, str]) -> None:
    one, _ = run
    before = one.summary
    lspe("train", one.path, "--resume")
    assert one.summary == before


def test_a_config_is_trained_again_elsewhere(run: tuple[Run, str], tmp_path: Path) -> None:
    one, _ = run
    lspe("train", one.path / "config.yaml", "--out", tmp_path / "again", "--threads", 1)
    assert without_times(Run.open(tmp_path / "again").history) == without_times(one.history)


def test_rows_that_were_left_out_are_listed(tmp_path: Path, tables: dict[str, Path]) -> None:
    table = tmp_path / "bad.csv"
    table.write_text(tables["regression"].read_text() + "not a molecule,1\n")
    with pytest.raises(UserError, match=r"row 42.*--on-invalid skip"):
        train(table, tmp_path / "run")
    output = train(table, tmp_path / "run", "--on-invalid", "skip")
    assert "40 of 41 rows used" in output
    assert "not a molecule" in (tmp_path / "run" / "rows.csv").read_text()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["zinc/gatedgcn-lpse"], "did you mean 'zinc/gatedgcn-lspe'"),
        (["--set", "model.layer=2"], "did you mean 'layers'"),
        (["--set", "model.name=gin"], r"model: unknown name 'gin': known: gatedgcn, pna, san, graphit"),
        (["own/gatedgcn-lspe"], r"--data table\.csv"),
        (["--data", "nowhere.csv"], r"nowhere\.csv"),
        (["runs/nothing/config.yaml"], "no such file"),
        (["--target", "y"], "need --data FILE"),
    ],
)
def test_what_is_wrong_is_said_in_words(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        lspe("train", *arguments)


def test_the_help_shows_an_example() -> None:
    for command in ("train", "evaluate", "reproduce"):
        assert "Example" in lspe(command, "--help")


def test_two_devices_by_command(tables: dict[str, Path], tmp_path: Path) -> None:
    """Lightning starts the second process with the same command."""
    folder = tmp_path / "run"
    command = ["train", "--data", tables["binary"], "--out", folder, "--epochs", 2, "--devices", 2, "--device", "cpu"]
    arguments = [sys.executable, "-m", "lspe", *map(str, command), "--threads", "1", *SETTINGS]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("epoch 2/2") == 1
    run = Run.open(folder)
    assert run.summary["hardware"]["devices"] == 2
    assert json.loads(lspe("evaluate", folder, "--json"))["run"]["loss"] == pytest.approx(
        run.summary["reported"]["test"]["loss"], rel=1e-5
    )


def test_a_table_from_the_standard_input_is_kept(tables: dict[str, Path], tmp_path: Path) -> None:
    words = [sys.executable, "-m", "lspe", "train", "own/gatedgcn-lspe", "--data", "-", "--epochs", "1", *SETTINGS]
    content = tables["regression"].read_bytes()
    out = tmp_path / "run"
    subprocess.run([*words, "--out", str(out)], input=content, check=True, capture_output=True)
    assert (out / "table.csv").read_bytes() == content
    assert Run.open(out).is_finished
    lspe("evaluate", out)  # which reads the table again
    refused = subprocess.run(words, input=content, capture_output=True, text=False, check=False)
    assert refused.returncode == 2
    assert b"give --out DIR" in refused.stderr


def test_another_network_than_there_are_is_said_in_words(tables: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="model: unknown name 'gin': known: gatedgcn, pna, san, graphit"):
        train(tables["regression"], tmp_path / "run", "--set", "model.name=gin")


def test_a_table_that_is_gone_is_named_with_what_to_do(tables: dict[str, Path], tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_bytes(tables["regression"].read_bytes())
    train(table, tmp_path / "run")
    table.rename(tmp_path / "moved.csv")
    with pytest.raises(UserError, match=r"table\.csv, is not there any more: put it back, or name another one"):
        lspe("evaluate", tmp_path / "run")
    assert "40 molecules" in lspe("evaluate", tmp_path / "run", tmp_path / "moved.csv")
