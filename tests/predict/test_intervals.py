"""Intervals that hold what they say, and are wide where models are apart."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lspe
from lspe.errors import UserError
from lspe.plots.trust import intervals, picture_of_trust
from lspe.predict.blend import Blend
from lspe.predict.intervals import Intervals, mean_and_spread
from lspe.predict.model_file import save_model
from lspe.predict.predictor import Predictor
from lspe.predict.splits import SplitPredictions
from lspe.training.summary import intervals_in_words
from tests.small import SMILES, write_table

SMALL = {"model.layers": 1, "model.hidden_dim": 8, "model.k": 4, "training.batch_size": 16}


def drawn(rng: np.random.Generator, count: int, constant: float, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """Errors as large as a line through the spread says, and the spread, [M, 1] both."""
    spread = rng.gamma(2, 0.5, (count, 1))
    return rng.normal(size=(count, 1)) * (constant + slope * spread), spread


@pytest.mark.parametrize(("constant", "slope"), [(1.0, 0.0), (0.3, 1.0), (0.0, 1.0)])
def test_they_hold_what_they_say_wherever_models_are(constant: float, slope: float) -> None:
    """Over many draws, 90 % intervals of 200 held-out errors hold 90 % of new values, of sure and of unsure ones."""
    rng = np.random.default_rng(0)
    held, of_sure, of_unsure = [], [], []
    for _ in range(60):
        found = Intervals.fit(*drawn(rng, 200, constant, slope))
        assert found is not None
        errors, spread = drawn(rng, 2000, constant, slope)
        inside = np.abs(errors) <= found.half_widths(spread)
        held.append(inside.mean())
        of_sure.append(inside[spread < np.quantile(spread, 0.3)].mean())
        of_unsure.append(inside[spread > np.quantile(spread, 0.7)].mean())
    assert np.mean(held) == pytest.approx(0.9, abs=0.012)
    assert np.mean(of_sure) == pytest.approx(0.9, abs=0.05)
    assert np.mean(of_unsure) == pytest.approx(0.9, abs=0.05)


def test_they_are_narrower_than_intervals_of_one_width() -> None:
    rng = np.random.default_rng(0)
    errors, spread = drawn(rng, 1000, 0.1, 1.0)
    found, of_one_width = Intervals.fit(errors, spread), Intervals.fit(errors, np.zeros_like(spread))
    assert found is not None
    assert of_one_width is not None
    assert of_one_width.slopes == (0.0,)
    new_errors, new_spread = drawn(rng, 4000, 0.1, 1.0)
    widths = [each.half_widths(new_spread) for each in (found, of_one_width)]
    assert all((np.abs(new_errors) <= width).mean() == pytest.approx(0.9, abs=0.02) for width in widths)
    assert widths[0].mean() < 0.9 * widths[1].mean()


def test_each_target_has_its_own_and_unknown_values_do_not_count() -> None:
    rng = np.random.default_rng(0)
    errors, spread = (np.concatenate([one, 10 * one], axis=1) for one in drawn(rng, 400, 0.3, 1.0))
    both = Intervals.fit(errors, spread)
    assert both is not None
    assert both.constants[1] == pytest.approx(10 * both.constants[0])
    assert both.slopes[1] == pytest.approx(both.slopes[0])
    errors[::2, 0] = np.nan
    some = Intervals.fit(errors, spread)
    assert some is not None
    assert (some.constants[1], some.slopes[1]) == (both.constants[1], both.slopes[1])
    assert some == Intervals.from_dict(json.loads(json.dumps(some.to_dict())))
    errors[8:, 0] = np.nan
    assert Intervals.fit(errors, spread) is None


@given(st.integers(1, 5), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_the_spread_is_that_of_numpy(models: int, molecules: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(models, molecules, 2))
    mean, spread = mean_and_spread(values, np.full(models, 1 / models))
    np.testing.assert_allclose(mean, values.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(spread, values.std(axis=0), atol=1e-12)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, session_cache: None, few_trees: None) -> lspe.Run:
    folder = tmp_path_factory.mktemp("intervals")
    return lspe.train(
        write_table(folder / "table.csv"), out=folder / "run", members=3, epochs=2, settings=SMALL, threads=1
    )


def test_they_are_predicted_as_they_were_scored(run: lspe.Run, tmp_path: Path) -> None:
    rows = list(csv.DictReader((run.path / "predictions.csv").read_text().splitlines()))
    model = lspe.load(run.path)
    smiles = [SMILES[int(row["row"]) - 2] for row in rows]
    low, high = model.predict_interval(smiles)
    np.testing.assert_allclose(low, [float(row["y_low"]) for row in rows], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(high, [float(row["y_high"]) for row in rows], rtol=1e-4, atol=1e-5)
    truth = np.array([float(row["y"]) for row in rows])
    about = run.summary["together"]["intervals"]
    assert about["test_coverage"] == ((truth >= low) & (truth <= high)).mean()
    assert about["half_widths"]["y"]["usual"] == pytest.approx(np.median(high - low) / 2, rel=1e-4)
    assert f"y ± {about['half_widths']['y']['usual']:.3g}" in intervals_in_words(run.summary)

    save_model(model, tmp_path / "model.lspe")
    for one in (model, lspe.load(tmp_path / "model.lspe")):
        (tmp_path / "new.csv").write_text("smiles\n" + "\n".join([*smiles, "C1CC"]) + "\n")
        one.predict_table(tmp_path / "new.csv", tmp_path / "out.csv")
        written = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
        assert list(written[0]) == ["smiles", "y_predicted", "y_sd", "y_low", "y_high", "reason"]
        np.testing.assert_allclose([float(row["y_high"]) for row in written[:-1]], high, rtol=1e-5)
        assert written[-1]["y_low"] == ""
    with pytest.raises(UserError, match="intervals are there for a table's regression"):
        lspe.load([run.path, run.path]).predict_interval("CCO")


def test_they_widen_with_the_spread_of_a_network_and_the_trees(run: lspe.Run) -> None:
    """Of several networks the mean of what each has beside the trees: so held-out molecules have it too."""
    model = lspe.load(run.path)
    model.intervals = Intervals((0.5,), (2.0,))
    smiles = ["CCO", "CCC", "c1ccccc1"]
    weights = [model.weights[:-1].sum(), model.weights[-1]]
    of_each = [Predictor([one], forests=model.forests, weights=weights) for one in model.members]
    spread = np.mean([one.predict(smiles, return_std=True)[1] for one in of_each], axis=0)
    mean = model.predict(smiles)
    low, high = model.predict_interval(smiles)
    assert (spread > 0).all()
    np.testing.assert_allclose(high - mean, 0.5 + 2 * spread)
    np.testing.assert_allclose(mean - low, 0.5 + 2 * spread)


def test_a_damaged_blend_is_refused(run: lspe.Run) -> None:
    path = run.path / "blend.json"
    before = path.read_text()
    try:
        path.write_text(json.dumps({**json.loads(before), "intervals": {"constants": ["x"], "slopes": [0]}}))
        with pytest.raises(UserError, match=r"blend\.json is damaged"):
            Blend.read(run.path)
    finally:
        path.write_text(before)


def test_they_are_drawn() -> None:
    rng = np.random.default_rng(0)
    y, half = rng.normal(size=(300, 1)), rng.gamma(2, 0.5, (300, 1))
    test = SplitPredictions("graph", "regression", ("z",), (), y, np.zeros((300, 1)), {"row": np.arange(300)})
    [axes] = intervals(test, half).axes
    assert f"{np.mean(np.abs(y) <= half):.0%} of 300 true values inside" in axes.get_xlabel()
    assert picture_of_trust(test) is None
