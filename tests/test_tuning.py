"""A search within its budget: it goes on after it was ended at any moment, and gives a configuration that trains."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from lspe import tuning
from lspe.cli.main import app
from lspe.errors import UserError
from lspe.experiment import Experiment, override, read_experiment
from tests.small import experiment, write_table

pytest.importorskip("optuna")

SINGLE = ("training.members=1", "training.forest=false", "model.layers=1", "model.hidden_dim=8")

pytestmark = pytest.mark.usefixtures("session_cache", "one_thread")


@pytest.fixture
def small(tmp_path: Path) -> Experiment:
    return experiment(write_table(tmp_path / "table.csv"), "training.protocol.max_epochs=2", preset="own/molecules")


@pytest.fixture(autouse=True)
def small_space(monkeypatch: pytest.MonkeyPatch) -> None:
    space = {
        "model.layers": lambda trial, name: trial.suggest_int(name, 1, 2),
        "training.protocol.lr": lambda trial, name: round(trial.suggest_float(name, 1e-4, 1e-2, log=True), 6),
    }
    monkeypatch.setattr(tuning, "SPACE", space)


def trials(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))


def test_a_search_finds_what_is_best_and_goes_on(small: Experiment, tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    first = tuning.tune(small, folder, minutes=5, trials=2, threads=1)
    assert [row["state"] for row in trials(folder)] == ["complete", "complete"]
    assert first.loss == pytest.approx(min(float(row["validation_loss"]) for row in trials(folder)))
    assert first.first_loss == pytest.approx(float(trials(folder)[0]["validation_loss"]))
    again = tuning.tune(small, folder, minutes=5, trials=4, threads=1)
    assert len(trials(folder)) == 4
    assert again.loss <= first.loss
    found = read_experiment(str(again.path))
    assert found.training.forest
    assert found.training.members is None
    for place, value in again.settings.items():
        part = yaml.safe_load(again.path.read_text())
        for name in place.split("."):
            part = part[name]
        assert part == pytest.approx(value, abs=1e-6)
    assert not list(folder.glob("trial[0-9]*"))
    with pytest.raises(UserError, match="a search for another table or with other settings"):
        tuning.tune(tuning.with_settings(small, {"model.k": 3}), folder, minutes=5)


def test_a_budget_that_is_used_up_searches_no_further(small: Experiment, tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    tuning.tune(small, folder, minutes=0.001, threads=1)  # the first trial may always finish
    count = len(trials(folder))
    assert count == 1
    tuning.tune(small, folder, minutes=0.001, threads=1)
    assert len(trials(folder)) == count


def test_a_curve_that_leads_nowhere_is_ended(
    small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import optuna

    monkeypatch.setattr(optuna.pruners, "MedianPruner", lambda **_: optuna.pruners.ThresholdPruner(upper=-1.0))
    with pytest.raises(UserError, match="too short for a single trial"):
        tuning.tune(small, tmp_path / "tuned", minutes=0.001, threads=1)
    assert [(row["state"], row["epochs"]) for row in trials(tmp_path / "tuned")] == [("pruned", "1")]


@pytest.mark.slow
def test_a_search_survives_being_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, folder = write_table(tmp_path / "table.csv"), tmp_path / "tuned"
    words = [sys.executable, "-m", "lspe", "tune", "--data", str(table), "--out", str(folder), "--threads", "1"]
    words += ["--set", "training.protocol.max_epochs=100000", "--set", "training.protocol.max_steps=1000000"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not list(folder.glob("trial0/metrics.csv")) and time.monotonic() < deadline:
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
    assert list(folder.glob("trial0/metrics.csv"))
    study = tuning._open_study(tuning._optuna(), folder)
    assert [trial.state.name for trial in study.trials] == ["RUNNING"]
    monkeypatch.setattr(tuning, "_single", lambda one: override(one, ["training.protocol.max_epochs=1", *SINGLE]))
    found = tuning.tune(Experiment(**study.user_attrs["experiment"]), folder, minutes=5, trials=1, threads=1)
    assert [row["state"] for row in trials(folder)] == ["fail", "complete"]
    assert found.settings == {}


def test_the_command_line_gives_what_train_takes(tmp_path: Path) -> None:
    table, folder = write_table(tmp_path / "table.csv"), tmp_path / "tuned"
    small = ["--set", "training.protocol.max_epochs=1", "--set", "model.hidden_dim=8", "--threads", "1"]
    arguments = ["tune", "--data", str(table), "--target", "y", "--trials", "2", "--out", str(folder), *small]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "lowest validation loss of 2 trials" in result.output
    arguments = ["train", str(folder / "best.yaml"), "--out", str(tmp_path / "run"), "--threads", "1", "--members", "1"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_only_tables_are_tuned(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tuning is for one's own table"):
        tuning.tune(read_experiment("nci/gatedgcn-lspe"), tmp_path, minutes=1)
