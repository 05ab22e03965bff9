import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from lspe.plots.predictions import parity, picture_of, roc
from lspe.predict.splits import SplitPredictions, predict_split, together
from lspe.training import Run, fit, open_runs, train
from tests.small import data_of, experiment, write_table


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "cache"))


def trained(folder: Path, task: str, *settings: str) -> tuple[Run, SplitPredictions]:
    chosen = experiment(write_table(folder / "table.csv", task), "training.protocol.max_epochs=3", *settings)
    data = data_of(chosen)
    run = fit(chosen, data, folder / "run")
    return run, predict_split(run, data, "train")


def test_numbers_are_those_the_run_was_scored_with(tmp_path: Path) -> None:
    run, found = trained(tmp_path, "regression")
    scores = run.summary["reported"]["train"]
    error = found.predicted - found.y
    assert np.abs(error).mean() == pytest.approx(scores["mae"], rel=1e-4)
    assert np.sqrt((error**2).mean()) == pytest.approx(scores["rmse"], rel=1e-4)
    found.write(tmp_path / "predictions.csv")
    frame, table = pd.read_csv(tmp_path / "predictions.csv"), pd.read_csv(tmp_path / "table.csv")
    assert list(frame.columns) == ["row", "smiles", "y", "y_predicted"]
    assert frame["y"].tolist() == table["y"][frame["row"] - 2].tolist()
    np.testing.assert_allclose(frame["y_predicted"], found.predicted[:, 0], rtol=1e-6)


def test_labels_with_gaps_are_scored_as_in_the_run(tmp_path: Path) -> None:
    run, found = trained(tmp_path, "binary")
    known = ~np.isnan(found.y)
    assert known.sum() < known.size
    for score, name in ((roc_auc_score, "roc_auc"), (average_precision_score, "ap")):
        each = [score(found.y[one, t], found.predicted[one, t]) for t, one in enumerate(known.T)]
        assert np.mean(each) == pytest.approx(run.summary["reported"]["train"][name], rel=1e-4)
    found.write(tmp_path / "predictions.csv")
    frame = pd.read_csv(tmp_path / "predictions.csv")
    assert list(frame.columns) == ["row", "smiles", "ring", "large", "ring_probability", "large_probability"]
    assert frame["large"].isna().sum() == (~known[:, 1]).sum()


def test_classes_are_named_as_in_the_table(tmp_path: Path) -> None:
    run, found = trained(tmp_path, "multiclass")
    right = (found.predicted.argmax(axis=1) == found.y).mean()
    assert 100 * right == pytest.approx(run.summary["reported"]["train"]["accuracy"])
    found.write(tmp_path / "predictions.csv")
    frame, table = pd.read_csv(tmp_path / "predictions.csv"), pd.read_csv(tmp_path / "table.csv")
    assert frame["y"].tolist() == table["y"][frame["row"] - 2].tolist()
    probabilities = [f"y_probability_{name}" for name in ("hydrocarbon", "other", "ring")]
    np.testing.assert_allclose(frame[probabilities].sum(axis=1), 1, rtol=1e-5)


def test_the_test_parts_of_all_folds_are_the_whole_table(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv")
    chosen = experiment(table, "training.protocol.max_epochs=1", folds=4)
    data = data_of(chosen)
    run = train(chosen, data, tmp_path / "runs")
    everything = together([predict_split(one, data) for one in open_runs(run.path)])
    rows = everything.names["row"]
    assert sorted(rows.tolist()) == list(range(2, 42))
    assert everything.y[np.argsort(rows), 0].tolist() == pd.read_csv(table)["y"].tolist()


def predictions(task: str, y: np.ndarray, predicted: np.ndarray, names: tuple[str, ...]) -> SplitPredictions:
    is_multiclass = task == "multiclass"
    tasks, classes = (("y",), names) if is_multiclass else (names, ())
    return SplitPredictions("graph", task, tasks, classes, y, predicted, {"row": np.arange(len(y))})  # type: ignore[arg-type]


def test_a_parity_picture_shows_every_known_value() -> None:
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=(2, 30, 2))
    y[:5, 1] = np.nan
    name, figure = picture_of(predictions("regression", y, predicted, ("a", "b")))
    assert name == "parity"
    for axes, true, value in zip(figure.axes, y.T, predicted.T, strict=True):
        known = ~np.isnan(true)
        points = axes.collections[0].get_offsets()
        np.testing.assert_allclose(points, np.stack([true[known], value[known]], axis=1))
        rmse = np.sqrt(np.mean((true - value)[known] ** 2))
        assert f"RMSE {rmse:.3g}" in axes.texts[0].get_text()
        assert axes.get_xlim() == axes.get_ylim()


def test_a_roc_picture_has_the_areas_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, size=(60, 3)).astype(float)
    y[::4, 1] = np.nan
    y[:, 2] = 1
    predicted = rng.random((60, 3)).round(1)
    name, figure = picture_of(predictions("binary", y, predicted, ("a", "b", "c")))
    assert name == "roc"
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    known = ~np.isnan(y[:, 1])
    assert labels == [
        f"a: {roc_auc_score(y[:, 0], predicted[:, 0]):.3f}",
        f"b: {roc_auc_score(y[known, 1], predicted[known, 1]):.3f}",
        "c: only one class",
    ]


def test_each_class_is_held_against_the_others() -> None:
    rng = np.random.default_rng(2)
    y, predicted = rng.integers(0, 3, size=50), rng.dirichlet(np.ones(3), size=50)
    figure = roc(predictions("multiclass", y, predicted, ("red", "green", "blue")))
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    for number, label in enumerate(labels):
        area = float(re.sub(".*: ", "", label))
        assert area == pytest.approx(roc_auc_score(y == number, predicted[:, number]), abs=6e-4)


@pytest.mark.parametrize("targets", [4, 12])
def test_every_target_has_a_panel(targets: int) -> None:
    y = np.random.default_rng(3).normal(size=(5, targets))
    figure = parity(predictions("regression", y, y, tuple(f"t{number}" for number in range(targets))))
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == [f"t{number}" for number in range(targets)]


def test_every_target_has_a_curve() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, size=(40, 14)).astype(float)
    figure = roc(predictions("binary", y, rng.random((40, 14)), tuple(f"t{number}" for number in range(14))))
    panels = [axes for axes in figure.axes if axes.get_visible()]
    named = [text.get_text().split(":")[0] for axes in panels for text in axes.get_legend().get_texts()]
    assert named == [f"t{number}" for number in range(14)]
