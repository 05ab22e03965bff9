"""Sweeps: every combination once, killed and gone on with, chosen by the validation score."""

import csv
import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lspe
from lspe.errors import UserError
from lspe.sweeping import Sweep, read_values, score_of, sweep
from lspe.training import Run
from lspe.training.module import TrainingModule
from tests import levels
from tests.cli.test_train import lspe as command
from tests.small import TINY

pytestmark = pytest.mark.usefixtures("session_cache", "one_thread", "ordinary_ctrl_c")

VALUES: dict[str, list[Any]] = {"model.dropout": [0, 0.3], "training.protocol.lr": ["3e-3"]}


def over(table: Path, out: Path, **options: Any) -> Sweep:
    usual = {"preset": "own/gatedgcn-lspe", "settings": TINY, "epochs": 2, "threads": 1, "seeds": [1, 2]}
    return sweep(table, options.pop("values", VALUES), out=out, **{**usual, **options})


def without_times_and_places(result: Sweep) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("total_seconds", "folder")} for row in result.rows]


@pytest.fixture(scope="module")
def whole(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, session_cache: None) -> Sweep:
    return over(tables["regression"], tmp_path_factory.mktemp("sweep") / "whole")


def test_a_row_per_setting_and_a_folder_per_run(whole: Sweep) -> None:
    assert len(whole.rows) == 2
    for row in whole.rows:
        folder = whole.path / f"dropout={row['model.dropout']},lr=3e-3"
        assert row["folder"] == str(folder)
        runs = [Run.open(folder / f"seed{seed}") for seed in (1, 2)]
        assert [(run.config.seed, run.config.model.dropout) for run in runs] == [
            (1, float(row["model.dropout"])),
            (2, float(row["model.dropout"])),
        ]
        scores = [run.summary["reported"]["val"]["mae"] for run in runs]
        assert row["val_mae"] == pytest.approx(np.mean(scores))
        assert row["val_sd"] == pytest.approx(np.std(scores))
        assert (row["runs"], row["epochs"]) == (2, 2)
        assert np.isfinite(np.asarray(lspe.load(folder / "seed1").predict("CCO"))).all()
    assert whole.rows[0]["val_mae"] <= whole.rows[1]["val_mae"], "the lower error comes first"
    assert whole.best is whole.rows[0]
    with (whole.path / "sweep.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["folder"] for row in written] == [row["folder"] for row in whole.rows]
    assert not any("test" in column for column in written[0])


def test_killed_it_goes_on_to_the_same_table(whole: Sweep, tables: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "sweep"

    def until_killed() -> None:
        steps = 0
        usual = TrainingModule.learn_from

        def die_in_the_third_run(self: TrainingModule, *arguments: Any) -> None:
            nonlocal steps
            steps += 1
            if steps == 4 * 2 * 2 + 5:
                os.kill(os.getpid(), signal.SIGKILL)
            usual(self, *arguments)

        TrainingModule.learn_from = die_in_the_third_run  # type: ignore[method-assign]
        over(tables["regression"], folder)

    child = multiprocessing.get_context("fork").Process(target=until_killed)
    child.start()
    child.join(240)
    assert child.exitcode == -signal.SIGKILL
    finished = sorted(folder.glob("*/*/summary.json"))
    assert len(finished) == 2
    times = [path.stat().st_mtime_ns for path in finished]
    again = over(tables["regression"], folder)
    assert without_times_and_places(again) == without_times_and_places(whole)
    assert [path.stat().st_mtime_ns for path in finished] == times, "what was finished is not touched"


def test_more_values_and_seeds_add_to_it(tables: dict[str, Path], tmp_path: Path) -> None:
    table, folder = tables["multiclass"], tmp_path / "sweep"
    one = over(table, folder, values={"model.k": [3, 4]}, seeds=[1], epochs=1)
    first = {row["model.k"]: row for row in one.rows}
    two = over(table, folder, values={"model.k": [3, 4, 5]}, seeds=[1, 2], epochs=1, test=True)
    assert {row["model.k"]: row["runs"] for row in two.rows} == {"3": 2, "4": 2, "5": 2}
    scores = [row["val_accuracy"] for row in two.rows]
    assert scores == sorted(scores, reverse=True), "the greater accuracy comes first"
    assert all(0 <= row["test_accuracy"] <= 100 for row in two.rows)
    assert first["3"]["runs"] == 1
    with pytest.raises(UserError, match=r"was begun with training.batch_size = 8, not 4"):
        over(table, folder, values={"model.k": [3, 4]}, epochs=1, settings=[*TINY, "training.batch_size=4"])


def test_a_setting_that_cannot_be_trained_leaves_the_others_alone(tables: dict[str, Path], tmp_path: Path) -> None:
    values = {"model.conv": ["GCNConv", "GCN2Conv"]}
    settings = [*TINY, "model.name=lspe", "model.conv=GCNConv"]
    result = over(tables["regression"], tmp_path / "sweep", values=values, settings=settings, seeds=[1], epochs=1)
    assert [row["runs"] for row in result.rows] == [1, 0]
    assert "GCN2Conv needs 'alpha': add it to model.conv_args" in result.rows[1]["problem"]
    assert result.best["model.conv"] == "GCNConv"


def test_graphs_in_memory(tmp_path: Path) -> None:
    options = {"settings": levels.SMALL, "epochs": 1, "threads": 1, "out": tmp_path / "sweep"}
    result = lspe.sweep(levels.many_graphs(20), {"model.readout": ["none"], "model.dropout": [0, 0.5]}, **options)
    assert result.metric == "accuracy"
    assert [row["runs"] for row in result.rows] == [1, 1]
    assert len(list((tmp_path / "sweep").rglob("graphs.lspe"))) == 1


def test_what_is_refused(tables: dict[str, Path], tmp_path: Path, whole: Sweep) -> None:
    table = tables["regression"]
    with pytest.raises(UserError, match="nothing to compare: give several values"):
        over(table, tmp_path / "a", values={})
    with pytest.raises(UserError, match="did you mean 'dropout'"):
        over(table, tmp_path / "a", values={"model.dropuot": [0, 1]})
    with pytest.raises(UserError, match="a value is given twice among dropout=0, dropout=0"):
        over(table, tmp_path / "a", values={"model.dropout": [0, 0]})
    with pytest.raises(UserError, match="holds a run, not a sweep"):
        over(table, Path(whole.rows[0]["folder"]) / "seed1")
    assert not (tmp_path / "a").exists()


def test_values_of_the_command_line() -> None:
    several, single = read_values(["model.k=8, 16", "model.conv_args={heads: 2},{heads: 4}", "model.layers=3"])
    assert several == {"model.k": [8, 16], "model.conv_args": [{"heads": 2}, {"heads": 4}]}
    assert single == ["model.layers=3"]
    with pytest.raises(UserError, match="write place=value,value"):
        read_values(["model.k"])


def test_the_score_that_counts() -> None:
    alone = {"metric": "mae", "reported": {"val": {"mae": 0.5}, "test": {"mae": None}}}
    assert score_of(alone, "val") == 0.5
    assert score_of(alone, "test") is None
    assert score_of({"metric": "mae", "reported": {"val": {"mae": {"mean": 0.4, "sd": 0.1}}}}, "val") == 0.4
    assert score_of({**alone, "together": {"val": {"together": {"mae": 0.3}}}}, "val") == 0.3


def test_by_command(tables: dict[str, Path], tmp_path: Path) -> None:
    tiny = [word for setting in TINY for word in ("--set", setting)]
    what = ["sweep", "own/gatedgcn-lspe", "--data", tables["regression"], "--target", "y", *tiny]
    arguments = [*what, "--set", "model.dropout=0,0.3", "--epochs", 1, "--threads", 1, "-o", tmp_path / "sweep"]
    printed = command(*arguments, "--seeds", "1,2")
    assert "val mae" in printed
    scores = [Run.open(path.parent).summary["reported"]["test"]["mae"] for path in tmp_path.rglob("last.ckpt")]
    assert len(scores) == 4
    assert not any(f"{score:.4f}" in printed for score in scores), "unless it is asked for"
    assert f"best on the validation part: {tmp_path / 'sweep' / 'dropout='}" in printed
    before = sorted(path.stat().st_mtime_ns for path in (tmp_path / "sweep").glob("*/*/last.ckpt"))
    assert "test mae" in command(*arguments, "--seeds", "1,2", "--test")
    assert sorted(path.stat().st_mtime_ns for path in (tmp_path / "sweep").glob("*/*/last.ckpt")) == before
    with pytest.raises(UserError, match="--seeds 1;2: write whole numbers with commas"):
        command(*arguments, "--seeds", "1;2")


def test_of_several_networks_and_a_forest_the_score_of_all_counts(tables: dict[str, Path], tmp_path: Path) -> None:
    settings = ["model.hidden_dim=16", "model.layers=1", "training.members=2"]
    result = over(
        tables["regression"], tmp_path / "sweep", preset="own/molecules", settings=settings, seeds=[1], epochs=1,
        values={"model.k": [4, 5]},
    )  # fmt: skip
    for row in result.rows:
        summary = json.loads((Path(row["folder"]) / "seed1" / "summary.json").read_text())
        assert row["val_mae"] == summary["together"]["val"]["together"]["mae"]
        assert lspe.load(Path(row["folder"]) / "seed1").predict("CCO") is not None
