"""Several seeds and folds in one command: mean and spread over them, and nothing done twice."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lspe.data import GraphData
from lspe.experiment import Experiment
from lspe.training import Run, RunError, open_runs, train
from lspe.training.progress import Progress
from lspe.training.seeds_and_folds import evaluate_runs, parts_of
from tests import small

Prepared = Callable[..., tuple[Experiment, GraphData]]
OPTIONS = {"device": "cpu", "threads": 1}


@pytest.fixture(scope="module")
def folds(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Experiment, GraphData]:
    """Two seeds on three folds."""
    experiment = small.experiment(tables["multiclass"], "training.protocol.max_epochs=2", "seeds=[1, 2]", folds=3)
    data = small.data_of(experiment)
    folder = tmp_path_factory.mktemp("several") / "runs"
    train(experiment, data, folder, **OPTIONS)
    return folder, experiment, data


def test_each_seed_and_fold_is_a_run(folds: tuple[Path, Experiment, GraphData]) -> None:
    folder, _, data = folds
    runs = open_runs(folder)
    assert [run.path.name for run in runs] == [f"seed{seed}-fold{fold}" for seed in (1, 2) for fold in (0, 1, 2)]
    assert {(run.config.seed, run.config.fold) for run in runs} == {(s, f) for s in (1, 2) for f in (0, 1, 2)}
    tested = [len(data.folds[fold]["test"]) for fold in (0, 1, 2)]
    assert [run.summary["graphs"]["test"] for run in runs] == tested * 2
    assert sum(tested) == len(data.graphs)


def test_the_summary_is_mean_and_standard_deviation(folds: tuple[Path, Experiment, GraphData]) -> None:
    folder, *_ = folds
    runs = open_runs(folder)
    summary = Run.open(folder).summary
    for which in ("reported", "last", "best"):
        for split in ("train", "val", "test"):
            values = [run.summary[which][split]["accuracy"] for run in runs]
            assert summary[which][split]["accuracy"]["mean"] == pytest.approx(np.mean(values))
            assert summary[which][split]["accuracy"]["sd"] == pytest.approx(np.std(values))
    scores = evaluate_runs(folder, "test")
    assert scores["all"]["accuracy"]["mean"] == pytest.approx(summary["reported"]["test"]["accuracy"]["mean"])


def test_finished_parts_are_kept_and_the_others_go_on(
    folds: tuple[Path, Experiment, GraphData],
) -> None:
    folder, experiment, data = folds
    with pytest.raises(RunError, match="already holds a run"):
        train(experiment, data, folder, **OPTIONS)
    before = {run.path: (run.path / "last.ckpt").stat().st_mtime_ns for run in open_runs(folder)}
    unfinished = folder / "seed2-fold1"
    expected = open_runs(folder)[4].history
    for name in ("summary.json", "last.ckpt", "best.ckpt", "metrics.csv"):
        (unfinished / name).unlink()
    begun: list[str] = []

    class Begun(Progress):
        def begin(self, title: str, *_: object) -> None:
            begun.append(title)

    train(experiment, data, folder, resume=True, progress=Begun(), **OPTIONS)
    assert begun == ["own/gatedgcn-lspe  seed 2  fold 1"]
    after = {run.path: (run.path / "last.ckpt").stat().st_mtime_ns for run in open_runs(folder)}
    assert {path for path in before if after[path] != before[path]} == {unfinished}
    assert small.without_times(open_runs(folder)[4].history) == small.without_times(expected)


def test_one_seed_on_data_without_folds_is_one_run(prepared: Prepared) -> None:
    experiment, data = prepared("regression")
    assert list(parts_of(experiment, data)) == [""]
    parts = parts_of(experiment.model_copy(update={"seeds": (3, 4)}), data)
    assert {name: part.seed for name, part in parts.items()} == {"seed3": 3, "seed4": 4}


def test_a_chosen_fold_is_one_run(folds: tuple[Path, Experiment, GraphData]) -> None:
    _, experiment, data = folds
    one = experiment.model_copy(update={"seeds": (), "fold": 2})
    assert [(name, part.fold) for name, part in parts_of(one, data).items()] == [("", 2)]


@pytest.mark.parametrize(
    "task, kind, expected",
    [
        ("binary", None, ["rdkit", "none", "rdkit"]),
        ("regression", None, ["rdkit"] * 3),
        ("binary", "morgan", ["morgan"] * 3),
    ],
)
def test_members_that_tell_classes_have_descriptors_by_turns(
    task: str, kind: str | None, expected: list[str], prepared: Prepared
) -> None:
    experiment, data = prepared(task, "training.members=3", f"model.descriptors={kind or 'null'}")
    assert [part.model.descriptors for part in parts_of(experiment, data).values()] == expected
