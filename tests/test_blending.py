"""A table's default: several networks and a forest, which predict as one."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import lspe
from lspe import announcement, blending
from lspe.blending import is_blended
from lspe.cli.main import app
from lspe.data.benchmarks import ogb
from lspe.data.molecules.descriptors import describe
from lspe.data.words import DescriptorKind
from lspe.errors import UserError
from lspe.experiment.data import load_data
from lspe.forest import KINDS
from lspe.predict import known
from lspe.predict.blend import Blend, best_shares
from lspe.predict.splits import predict_split
from lspe.training.fitting import seen_by_member
from lspe.training.seeds_and_folds import evaluate_runs, open_runs
from tests.data.benchmarks.test_official import ogb_archive, ogb_tables, with_mapping
from tests.small import SMILES, write_table

SMALL = {"model.layers": 1, "model.hidden_dim": 8, "model.k": 4, "training.batch_size": 16}


pytestmark = pytest.mark.usefixtures("few_trees")


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


def test_networks_of_a_benchmark_validate_on_the_same_graphs(tmp_path: Path) -> None:
    settings = {**SMALL, "fold": 0}
    run = lspe.train("csl/gatedgcn-lspe", out=tmp_path / "run", members=2, epochs=1, settings=settings, threads=1)
    runs = open_runs(run.path)
    data = load_data(run.config)
    assert len({one.config.seed for one in runs}) == 2
    validations = [predict_split(one, data, "val") for one in runs]
    assert all(np.array_equal(one.names["row"], data.folds[0]["val"]) for one in validations)
    chosen = np.mean([one.predicted for one in validations], axis=0).argmax(axis=1)
    accuracy = 100 * (chosen == validations[0].y.reshape(-1)).mean()
    assert run.summary["together"]["val"]["networks"]["accuracy"] == pytest.approx(accuracy)


def test_the_forest_of_a_benchmark_learns_from_its_training_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ogb, "_TOX21_MOLECULES", 60)
    archive = ogb_archive(tmp_path / "tox21.zip", "tox21", ogb_tables(60, 12))
    with_mapping(archive, [SMILES[number % len(SMILES)] for number in range(60)])
    learned: list[int] = []
    fit = blending.Forest.fit
    monkeypatch.setattr(blending.Forest, "fit", lambda x, y, *a, **b: learned.append(len(y)) or fit(x, y, *a, **b))
    run = lspe.train(
        "moltox21/gatedgcn-lspe-plus",
        root=tmp_path,
        out=tmp_path / "run",
        members=2,
        epochs=1,
        settings=SMALL,
        threads=1,
    )
    assert learned == [56]
    assert set(run.summary["together"]["test"]) == {"networks", "forest", "together"}
    model = lspe.load(run.path)
    assert (len(model.members), len(model.forests)) == (2, 1)
    assert model.predict(SMILES[:3]).shape == (3, 12)


def test_a_benchmark_without_molecules_has_no_forest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="csl has no SMILES of which descriptors could be computed"):
        lspe.train("csl/gatedgcn-lspe", out=tmp_path / "run", settings={"training.forest": True})


def test_the_run_predicts_what_was_scored(run: lspe.Run) -> None:
    rows = list(csv.DictReader((run.path / "predictions.csv").read_text().splitlines()))
    model = lspe.load(run.path)
    assert (len(model.members), len(model.forests)) == (3, 1)
    mean, sd = model.predict([SMILES[int(row["row"]) - 2] for row in rows], return_std=True)
    np.testing.assert_allclose(mean, [float(row["y_predicted"]) for row in rows], rtol=1e-5)
    assert (sd > 0).all()
    truth = np.array([float(row["y"]) for row in rows])
    assert run.summary["together"]["test"]["together"]["mae"] == pytest.approx(np.abs(mean - truth).mean(), rel=1e-5)


def test_networks_with_and_without_descriptors_predict_as_one(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = [f"{smiles},{number % 2},{number % 5}" for number, smiles in enumerate(SMILES)]
    table.write_text("\n".join(["smiles,y,temperature", *rows]) + "\n", encoding="utf-8")
    run = lspe.train(
        table,
        targets=["y"],
        extra=["temperature"],
        out=tmp_path / "run",
        members=2,
        epochs=1,
        settings=SMALL,
        threads=1,
    )
    networks = [one.network() for one in open_runs(run.path)]
    assert [len(network.get_buffer("descriptors.mean")) for network in networks] == [1 + 206, 1]
    written = list(csv.DictReader((run.path / "predictions.csv").read_text().splitlines()))
    chosen = [int(row["row"]) - 2 for row in written]
    model = lspe.load(run.path)
    predicted = model.predict([SMILES[row] for row in chosen], extra=[[row % 5] for row in chosen])
    np.testing.assert_allclose(predicted, [float(row["y_probability"]) for row in written], rtol=1e-5)


def test_of_many_molecules_some_are_grown_on_and_kept(run: lspe.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_data(run.config)
    rows = np.sort(np.concatenate([data.splits["train"], data.splits["val"]]))
    all_at_once = blending._in_pieces(blending._fit(data, rows, 1).predict_kinds, data, rows)
    monkeypatch.setattr(blending, "_AT_ONCE", 7)
    in_pieces = blending._in_pieces(blending._fit(data, rows, 1).predict_kinds, data, rows)
    np.testing.assert_array_equal(in_pieces, all_at_once)
    monkeypatch.setattr(blending, "MOST_FOR_A_FOREST", 20)
    seen: list[int] = []
    monkeypatch.setattr(blending.Forest, "fit", lambda descriptors, y, *_, **__: seen.append(len(y)))
    blending._fit(data, rows, 1)
    monkeypatch.setattr(known, "MOST_KNOWN", 10)
    kept = known.KnownMolecules.of(lspe.load(run.path).members[0], data)
    assert (seen, len(kept.smiles), len(set(kept.smiles))) == ([20], 10, 10)
    assert set(kept.smiles) <= {data.smiles[row] for row in rows.tolist()}


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


def test_the_command_line_evaluates_all_as_one(run: lspe.Run, tmp_path: Path) -> None:
    def evaluate(*arguments: str) -> dict[str, dict[str, float]]:
        result = CliRunner().invoke(app, ["evaluate", str(run.path), *arguments, "--json"], catch_exceptions=False)
        scores: dict[str, dict[str, float]] = json.loads(result.stdout)
        return scores

    assert evaluate()["together"]["mae"] == pytest.approx(run.summary["together"]["test"]["together"]["mae"], rel=1e-5)
    new = tmp_path / "new.csv"
    new.write_text("name,smiles,y\na,CCO,100\nb,c1ccccc1,155\nc,not a molecule,3\n")
    truth, predicted = np.array([100, 155]), lspe.load(run.path).predict(["CCO", "c1ccccc1"])
    assert evaluate(str(new))["2 molecules"]["mae"] == pytest.approx(np.abs(truth - predicted).mean(), rel=1e-5)


def test_test_molecules_are_named(tmp_path: Path) -> None:
    lines = [f"m{number},{smiles},{number}" for number, smiles in enumerate(SMILES)]
    (tmp_path / "table.csv").write_text("\n".join(["Name,smiles,y", *lines]) + "\n")
    run = lspe.train(
        tmp_path / "table.csv", preset="own/gatedgcn-lspe", out=tmp_path / "run", epochs=1, settings=SMALL, threads=1
    )
    for row in csv.DictReader((run.path / "predictions.csv").read_text().splitlines()):
        number = int(float(row["y"]))
        assert (row["name"], row["smiles"]) == (f"m{number}", SMILES[number])


def test_what_was_chosen_is_said_before_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{smiles};{number},5;{'test' if number % 4 == 0 else 'train'}" for number, smiles in enumerate(SMILES)]
    (tmp_path / "europe.csv").write_text("\n".join(["SMILES;logS;split", *rows]) + "\n")
    lspe.train(
        tmp_path / "europe.csv", out=tmp_path / "run", epochs=1, members=1, settings=SMALL, threads=1, progress=True
    )
    said = capsys.readouterr().out.partition("epoch 1/1")[0]
    assert "europe.csv: molecules in 'SMILES', learning 'logS'" in said
    assert "task regression; logS: 40 numbers, 0.5 to 39.5, mean 20" in said
    assert "parts: 27 train, 3 val, 10 test, divided as 'split' says" in said
    assert "one network of at most 1 epochs with rdkit descriptors, and a forest beside it: about" in said


@pytest.mark.parametrize("faster, chosen", [(0.5, 4), (0.95, 1), (3.0, 1)])
def test_threads_are_used_where_they_are_faster(
    faster: float, chosen: int, run: lspe.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step of each turn, and a busy moment, do not count."""
    turns: list[int] = []

    def measured(*_: object) -> float:
        threads = torch.get_num_threads()
        turns.append(threads)
        is_first, is_busy = turns[-2:-1] != [threads], 6 <= turns.count(threads) < 18
        return 9.0 if is_first or is_busy else 1.0 if threads == 1 else faster

    monkeypatch.setattr(announcement, "_step", measured)
    before = torch.get_num_threads()
    assert announcement.threads_for(run.config, load_data(run.config), 4) == chosen
    assert turns == 10 * [4, 4, 1, 1]
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("worked, told", [(10.0, "9 s"), (2.5, "35 s")])
def test_the_time_of_the_forest_counts_what_others_take_of_the_processor(
    run: lspe.Run, worked: float, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees that take the processor 8.6 s take four times as long where it works for us a quarter of the time."""
    passed, done = iter([0.0, 10.0]), iter([0.0, worked])
    clocks = SimpleNamespace(perf_counter=lambda: next(passed), process_time=lambda: next(done))
    monkeypatch.setattr(announcement, "time", clocks)
    monkeypatch.setattr(announcement, "seconds_per_epoch", lambda *_: 0.0)
    said = announcement.announce(run.config, load_data(run.config))
    assert f"a forest beside them: about {told} or less" in said


def test_extra_columns_stand_beside_the_molecules(tmp_path: Path) -> None:
    """What is learned depends on the extra column alone, which the forest finds out."""
    lines = [f"{smiles},{number * 7 % 40},{number * 7 % 40 + 0.5}" for number, smiles in enumerate(SMILES)]
    (tmp_path / "table.csv").write_text("\n".join(["smiles,y,pH", *lines]) + "\n")
    run = lspe.train(
        tmp_path / "table.csv",
        targets=["y"],
        extra=["pH"],
        out=tmp_path / "run",
        members=1,
        epochs=1,
        settings=SMALL,
        threads=1,
    )
    model = lspe.load(run.path)
    rows = list(csv.DictReader((run.path / "predictions.csv").read_text().splitlines()))
    extra = [[float(row["y"]) + 0.5] for row in rows]
    predicted = model.predict([row["smiles"] for row in rows], extra=extra)
    np.testing.assert_allclose(predicted, [float(row["y_predicted"]) for row in rows], rtol=1e-5)
    [low, high] = model.forests[0].predict(_twice("CCO"), np.array([[1.0], [39.0]]))
    assert high > low + 3
    new = tmp_path / "new.csv"
    new.write_text("smiles,pH\nCCO,3.5\nCCN,n/a\n")
    model.predict_table(new, tmp_path / "out.csv")
    values = [row["y_predicted"] for row in csv.DictReader((tmp_path / "out.csv").read_text().splitlines())]
    assert float(values[0]) == pytest.approx(model.predict(["CCO"], extra=[[3.5]])[0], rel=1e-5)
    assert np.isfinite(float(values[1]))
    with pytest.raises(UserError, match=r"further numbers of each molecule \(pH\): give them as extra="):
        model.predict("CCO")
    with pytest.raises(UserError, match="further numbers of each molecule"):
        list(model.predict_pieces([["CCO"]], lambda piece: piece))
    new.write_text("smiles\nCCO\n")
    with pytest.raises(UserError, match="has no column 'pH', which the model was trained with"):
        model.predict_table(new, tmp_path / "out.csv")


def _twice(smiles: str) -> dict[DescriptorKind, np.ndarray]:
    return {kind: describe([smiles, smiles], kind) for kind in KINDS}


def test_going_on_changes_nothing(run: lspe.Run) -> None:
    before = (run.path / "predictions.csv").read_text()
    lspe.train(run.path, resume=True)
    assert torch.get_num_threads() == 1, "as many as when it was begun"
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


def test_the_best_of_several_parts_counts_most() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random((500, 1)) < 0.3).astype(np.float64)
    informed = np.clip(0.3 + 0.6 * (y - 0.3) + 0.1 * rng.normal(size=y.shape), 0.01, 0.99)
    parts = np.stack([rng.random(y.shape), informed, rng.random(y.shape)])
    shares = best_shares(y, parts, "binary")
    assert shares[1] > 0.9
    assert sum(shares) == pytest.approx(1, abs=2e-3)
    assert best_shares(y[:2], parts[:, :2], "binary") == pytest.approx([1 / 3] * 3, abs=0.2)
    alike = np.stack([informed] * 3)
    assert best_shares(y, alike, "binary") == pytest.approx([1 / 3] * 3, abs=1e-3)


def test_members_are_for_one_division(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv")
    with pytest.raises(UserError, match="several members are for one seed and one division"):
        lspe.train(table, out=tmp_path / "run", members=2, folds=3, epochs=1, settings=SMALL)
