"""A search within its budget: it goes on after it was ended at any moment, and gives a configuration that trains."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from matplotlib.figure import Figure
from typer.testing import CliRunner

from lspe import tuning
from lspe.cli.main import app
from lspe.errors import UserError
from lspe.experiment import Experiment, override, read_experiment
from lspe.plots import search
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


def test_pictures_show_how_the_search_went_and_what_mattered(
    small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses that depend on one of two settings alone: it explains nearly all of their variance."""
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(search, "setting_importance", lambda shares: drawn.update(shares) or Figure())
    monkeypatch.setattr(search, "search_history", lambda trials: drawn.update(trials=trials) or Figure())

    def fitted(chosen: Experiment, *_: Any, progress: Any, **__: Any) -> None:
        progress.lowest = float(chosen.model.layers)

    monkeypatch.setattr(tuning, "fit", fitted)
    tuning.tune(small, tmp_path / "tuned", minutes=5, trials=4)
    assert [one.number for one in drawn["trials"]] == [0, 1, 2, 3]
    assert not (tmp_path / "tuned" / tuning.IMPORTANCE).exists()
    tuning.tune(small, tmp_path / "tuned", minutes=5, trials=16)
    assert (tmp_path / "tuned" / tuning.HISTORY).is_file()
    assert (tmp_path / "tuned" / tuning.IMPORTANCE).is_file()
    assert drawn["model.layers"] > 0.9 > 0.1 > drawn["training.protocol.lr"]
    assert [one.loss for one in drawn["trials"]] == [
        pytest.approx(float(row["validation_loss"])) for row in trials(tmp_path / "tuned")
    ]


def test_history_and_importance_show_every_trial_and_setting() -> None:
    trials = [search.TrialResult(0, 3.0, True), search.TrialResult(1, 4.0, False), search.TrialResult(2, 2.0, True)]
    [axes] = search.search_history(trials).axes
    [lowest] = axes.lines
    assert lowest.get_ydata().tolist() == [3.0, 2.0]
    assert [len(one.get_offsets()) for one in axes.collections] == [2, 1]
    [axes] = search.setting_importance({"a": 0.2, "b": 0.8}).axes
    assert [bar.get_width() for bar in axes.patches] == [0.2, 0.8]


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
