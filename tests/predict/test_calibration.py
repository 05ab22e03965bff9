"""Probabilities that are frequencies, and how near the training set is."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import lspe
from lspe.cli.main import app
from lspe.errors import UserError
from lspe.plots.trust import reliability
from lspe.predict.calibration import Calibration, calibration_error_by_chance, expected_calibration_error
from lspe.predict.splits import SplitPredictions
from lspe.training.summary import calibration_in_words
from tests.members import save
from tests.small import write_table

SMALL = {"model.layers": 1, "model.hidden_dim": 8, "model.k": 4, "training.batch_size": 16}


def overconfident(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and probabilities whose logits are three times too large and shifted."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-1, 1.5, count)
    y = (rng.random(count) < 1 / (1 + np.exp(-logits))).astype(float)
    return y, 1 / (1 + np.exp(-(3 * logits + 1)))


def test_overconfident_labels_are_calibrated() -> None:
    y, predicted = (one[:, None] for one in overconfident(1000, 0))
    found = Calibration.fit(y, predicted, "binary")
    assert found.slopes[0] == pytest.approx(1 / 3, abs=0.06)
    assert found.shifts[0] == pytest.approx(-1 / 3, abs=0.12)
    y, predicted = (one[:, None] for one in overconfident(4000, 1))
    before = expected_calibration_error(y, predicted, "binary")
    after = expected_calibration_error(y, found.apply(predicted, "binary"), "binary")
    assert before is not None
    assert after is not None
    assert before > 0.1
    assert after < 0.03


def test_each_target_has_its_own_and_missing_labels_do_not_count() -> None:
    y, predicted = overconfident(1000, 0)
    rng = np.random.default_rng(2)
    good = rng.random(1000)
    labels = np.stack([y, (rng.random(1000) < good).astype(float), np.full(1000, np.nan)], axis=1)
    labels[::3, 0] = np.nan
    found = Calibration.fit(labels, np.stack([predicted, good, good], axis=1), "binary")
    assert found.slopes[0] < 0.45
    assert found.slopes[1] == pytest.approx(1, abs=0.15)
    assert (found.slopes[2], found.shifts[2]) == (1.0, 0.0)


def test_few_labels_change_nothing() -> None:
    y, predicted = (one[:20, None] for one in overconfident(1000, 0))
    assert Calibration.fit(y, predicted, "binary") == Calibration((1.0,), (0.0,))


def test_overconfident_classes_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1, (3000, 4))
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(4, p=one) for one in true]).astype(float)
    said = np.exp(3 * logits) / np.exp(3 * logits).sum(axis=1, keepdims=True)
    found = Calibration.fit(y[:1500], said[:1500], "multiclass")
    assert found.slopes[0] == pytest.approx(1 / 3, abs=0.05)
    calibrated = found.apply(said[1500:], "multiclass")
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)
    error = expected_calibration_error(y[1500:], calibrated, "multiclass")
    assert error is not None
    assert error < 0.05
    assert (calibrated.argmax(axis=1) == said[1500:].argmax(axis=1)).all()


def test_the_error_is_that_of_a_sum_by_hand() -> None:
    y = np.array([[0.0], [1.0], [1.0], [np.nan]])
    predicted = np.array([[0.11], [0.15], [0.9], [0.5]])
    assert expected_calibration_error(y, predicted, "binary") == pytest.approx((abs(1 - 0.26) + 0.1) / 3)
    assert expected_calibration_error(y[3:], predicted[3:], "binary") is None


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_the_error_by_chance_is_that_of_right_probabilities(task: str) -> None:
    """Over many tables whose labels were drawn with the probabilities that are said of them."""
    rng = np.random.default_rng(0)
    found, by_chance = [], []
    for _ in range(100):
        if task == "binary":
            predicted = rng.random((60, 2))
            y = np.where(rng.random((60, 2)) < 0.3, np.nan, rng.random((60, 2)) < predicted)
        else:
            predicted = rng.dirichlet(np.ones(3), 60)
            y = np.array([rng.choice(3, p=one) for one in predicted], dtype=float)
        found.append(expected_calibration_error(y, predicted, task))
        by_chance.append(calibration_error_by_chance(y, predicted, task))
    assert np.mean(by_chance) == pytest.approx(np.mean(found), rel=0.05)
    assert calibration_error_by_chance(np.full((3, 1), np.nan), np.full((3, 1), 0.5), "binary") is None


@pytest.fixture(scope="module", params=["binary", "multiclass"])
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, session_cache: None, few_trees: None
) -> lspe.Run:
    folder = tmp_path_factory.mktemp("calibrated")
    table = write_table(folder / "table.csv", request.param)
    return lspe.train(table, out=folder / "run", members=2, epochs=1, settings=SMALL, threads=1)


def test_a_run_predicts_calibrated_probabilities(run: lspe.Run) -> None:
    path = run.path / "blend.json"
    before = path.read_text()
    plain = lspe.load(run.path).predict(["CCO", "c1ccccc1O"])
    values = json.loads(before)
    assert values["calibration"] is not None
    outputs = len(values["calibration"]["slopes"])
    values["calibration"] = {
        "slopes": [0.5] * outputs,
        "shifts": [0.1 if run.summary["task"] == "binary" else 0.0] * outputs,
    }
    rows = list(csv.DictReader((run.path / "predictions.csv").read_text().splitlines()))
    shown = [name for name in rows[0] if "probability" in name]
    np.testing.assert_allclose(
        lspe.load(run.path).predict([row["smiles"] for row in rows]),
        [[float(row[name]) for name in shown] for row in rows],
        rtol=1e-5,
    )
    try:
        path.write_text(json.dumps(values))
        model = lspe.load(run.path)
        assert model.calibration is not None
        changed = model.predict(["CCO", "c1ccccc1O"])
        assert np.abs(changed - plain).max() > 1e-3
        found = model.explain("CCO")
        np.testing.assert_allclose(found.value, changed[0], rtol=1e-5)
        assert np.abs(found.calibration).max() > 1e-3
    finally:
        path.write_text(before)
    assert (run.path / "reliability.png").is_file()
    calibration = run.summary["together"]["calibration"]
    assert calibration["test_error"] >= 0
    assert f"{calibration['test_error_by_chance']:.1%} would be chance alone" in calibration_in_words(run.summary)


def test_the_nearest_molecule_is_a_column(run: lspe.Run, tmp_path: Path) -> None:
    model = lspe.load(run.path)
    assert model.known is not None
    known = model.known.smiles[0]
    table = tmp_path / "new.csv"
    table.write_text(f"smiles,nearest_smiles\n{known},x\nC1CC,x\nCCCCCCCCBr,x\n")
    arguments = ["predict", str(run.path), str(table), "--nearest", "-o", str(tmp_path / "out.csv")]
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert (rows[0]["nearest_smiles_2"], float(rows[0]["nearest_tanimoto"])) == (known, 1.0)
    assert float(rows[0]["nearest_learned"]) == pytest.approx(1.0)
    assert rows[1]["nearest_tanimoto"] == ""
    assert 0 < float(rows[2]["nearest_tanimoto"]) < 1
    first, broken, other = model.nearest([known, "C1CC", "CCCCCCCCBr"], count=3)
    assert (first[0].smiles, broken, len(other)) == (known, [], 3)


def test_a_run_without_its_molecules_has_none_near(tmp_path: Path) -> None:
    model = lspe.load(save(tmp_path / "run"))
    with pytest.raises(UserError, match="trained on are not kept with it"):
        model.nearest("CCO")


def test_pictures_of_trust() -> None:
    y, predicted = overconfident(300, 0)
    about = {"names": {"row": np.arange(300)}}
    labels = SplitPredictions(
        "graph", "binary", ("a", "b"), (), np.stack([y, y], 1), np.stack([predicted] * 2, 1), **about
    )
    [axes] = reliability(labels).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
