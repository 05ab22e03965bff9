"""A table's default: several networks and a forest, which predict as one."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import lspe
from lspe import forest
from lspe.blending import is_blended
from lspe.errors import UserError
from lspe.experiment.data import load_data
from lspe.predict.blend import Blend
from lspe.training.fitting import seen_by_member
from lspe.training.seeds_and_folds import evaluate_runs, open_runs
from tests.small import SMILES, write_table

SMALL = {"model.layers": 1, "model.hidden_dim": 8, "model.k": 4, "training.batch_size": 16}


@pytest.fixture(scope="module", autouse=True)
def few_trees() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "_TREES", 20)
        patch.setattr(forest, "_FEWEST_TREES", 10)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, session_cache: None) -> lspe.Run:
    folder = tmp_path_factory.mktemp("blended")
    table = write_table(folder / "table.csv")
    return lspe.train(table, out=folder / "run", members=3, epochs=2, settings=SMALL, threads=1)


def test_each_network_validates_on_another_part(run: lspe.Run) -> None:
    runs = open_runs(run.path)
    assert [one.config.member for one in runs] == [0, 1, 2]
    data = load_data(run.config)
    parts = [set(seen_by_member(one.config, data).splits["val"].tolist()) for one in runs]
    assert not parts[0] & parts[1]
    assert not parts[1] & parts[2]
    tested = set(data.splits["test"].tolist())
    assert not any(part & tested for part in parts)


def test_the_run_predicts_what_was_scored(run: lspe.Run) -> None:
    rows = list(csv.DictReader((run.path / "predictions.csv").read_text().splitlines()))
    model = lspe.load(run.path)
    assert (len(model.members), len(model.forests)) == (3, 1)
    mean, sd = model.predict([SMILES[int(row["row"]) - 2] for row in rows], return_std=True)
    np.testing.assert_allclose(mean, [float(row["y_predicted"]) for row in rows], rtol=1e-5)
    assert (sd > 0).all()
    truth = np.array([float(row["y"]) for row in rows])
    assert run.summary["together"]["test"]["together"]["mae"] == pytest.approx(np.abs(mean - truth).mean(), rel=1e-5)


def test_the_weights_add_up_and_count(run: lspe.Run) -> None:
    weights = json.loads((run.path / "blend.json").read_text())
    assert weights["networks"] + weights["forest"] == pytest.approx(1)
    model = lspe.load(run.path)
    assert model.weights.tolist() == pytest.approx([weights["networks"] / 3] * 3 + [weights["forest"]])


def test_a_damaged_blend_is_refused(run: lspe.Run) -> None:
    path = run.path / "blend.json"
    before = path.read_text()
    try:
        path.write_text('{"networks": 0.9, "forest": 0.9}')
        with pytest.raises(UserError, match=r"blend\.json is damaged: its weights do not add up to 1"):
            lspe.load(run.path)
    finally:
        path.write_text(before)


def test_the_networks_are_evaluated_on_their_own_parts(run: lspe.Run) -> None:
    scores = evaluate_runs(run.path, "val")
    for one in open_runs(run.path):
        assert scores[one.path.name]["mae"] == pytest.approx(one.summary["reported"]["val"]["mae"], rel=1e-6)


def test_going_on_changes_nothing(run: lspe.Run) -> None:
    before = (run.path / "predictions.csv").read_text()
    lspe.train(run.path, resume=True, threads=1)
    assert (run.path / "predictions.csv").read_text() == before


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_labels_and_classes(task: str, tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv", task)
    run = lspe.train(table, out=tmp_path / "run", members=1, epochs=1, settings=SMALL, threads=1)
    assert is_blended(run)
    together = run.summary["together"]
    assert set(together["test"]) == {"networks", "forest", "together"}
    assert (set(together["targets"]) == {"ring", "large"}) if task == "binary" else ("targets" not in together)
    predicted = lspe.load(run.path).predict(["CCO", "c1ccccc1"])
    assert predicted.shape == (2, 2 if task == "binary" else 3)
    assert ((predicted >= 0) & (predicted <= 1)).all()


def test_weights_follow_the_validation_part() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(400, 1))
    good, bad = y + 0.1 * rng.normal(size=y.shape), rng.normal(size=y.shape)
    assert Blend.choose(y, bad, good, "regression").forest > 0.95
    assert Blend.choose(y, good, bad, "regression").networks > 0.95
    one, other = y + rng.normal(size=y.shape), y + rng.normal(size=y.shape)
    assert 0.3 < Blend.choose(y, one, other, "regression").networks < 0.7
    assert 0.15 < Blend.choose(y[:5], bad[:5], good[:5], "regression").networks < 0.5


def test_members_are_for_one_division(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv")
    with pytest.raises(UserError, match="several members are for one seed and one division"):
        lspe.train(table, out=tmp_path / "run", members=2, folds=3, epochs=1, settings=SMALL)
