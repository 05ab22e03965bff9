"""Training into a run folder: it learns, it can be repeated, and its folder is enough to predict."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lspe.data import BatchLoader, GraphData
from lspe.experiment import Experiment, build_network, load_data, override, read_experiment
from lspe.training import Run, RunError, fit
from lspe.training.module import TrainingError
from lspe.training.progress import Progress
from lspe.training.transfer import transfer
from tests import small
from tests.small import without_times

Prepared = Callable[..., tuple[Experiment, GraphData]]
EPOCHS = "training.protocol.max_epochs={}".format


def train(experiment: Experiment, data: GraphData, folder: Path, **options: object) -> Run:
    return fit(experiment, data, folder, device="cpu", threads=1, **options)


@pytest.fixture(scope="module")
def trained(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, GraphData]:
    experiment, data = prepared("regression", EPOCHS(30), "training.protocol.lr=5e-3")
    return train(experiment, data, tmp_path_factory.mktemp("trained") / "run"), data


def test_it_learns(trained: tuple[Run, GraphData]) -> None:
    run, data = trained
    y = data.split("train").y
    history = run.history
    assert [row["epoch"] for row in history] == list(range(1, 31))
    assert history[-1]["train_loss"] < 0.5 * history[0]["train_loss"]
    assert run.summary["reported"]["train"]["mae"] < 0.6 * np.abs(y - y.mean()).mean()


def test_scores_are_those_of_the_saved_weights_in_original_units(trained: tuple[Run, GraphData]) -> None:
    run, data = trained
    test = data.split("test")
    for which in ("last", "best"):
        with torch.no_grad():
            output = run.network(which)(test.batch())
        guess = run.objective.predict(output).numpy()
        expected = np.abs(guess - test.y).mean()
        assert run.summary[which]["test"]["mae"] == pytest.approx(expected, rel=1e-5)
    assert run.summary["reported"] == run.summary["last"]
    best = min(run.history, key=lambda row: row["val_mae"])
    assert run.summary["best"]["epoch"] == best["epoch"]
    assert run.summary["best"]["val"]["mae"] == pytest.approx(best["val_mae"], rel=1e-6)


def test_the_summary_tells_what_it_was_made_with(trained: tuple[Run, GraphData]) -> None:
    run, data = trained
    summary = run.summary
    assert summary["parameters"] == sum(parameter.numel() for parameter in run.network().parameters())
    assert summary["graphs"] == {name: len(part) for name, part in data.splits.items()}
    assert summary["versions"]["torch"] == torch.__version__
    assert (summary["epochs"], summary["seed"], summary["protocol"]) == (30, 41, "fast")
    assert summary["stopped"] == "all epochs were done"
    mean = data.split("train").y.mean()
    assert summary["constant"]["test"]["mae"] == pytest.approx(np.abs(data.split("test").y - mean).mean(), rel=1e-5)
    assert summary["hardware"]["threads"] == 1


def test_the_folder_is_enough_to_predict(trained: tuple[Run, GraphData]) -> None:
    run = Run.open(trained[0].path)
    interface = run.interface
    assert (interface.features.kind, interface.task_names, interface.fragments) == ("ogb", ("y",), "keep")
    assert interface.scaling is not None
    y = trained[1].split("train").y
    assert interface.scaling.mean[0] == pytest.approx(y.mean(), rel=1e-6)
    assert json.loads((run.path / "interface.json").read_text())["versions"].keys() >= {"lspe", "torch", "rdkit"}


def test_the_config_repeats_the_run(trained: tuple[Run, GraphData], tmp_path: Path) -> None:
    run, _ = trained
    again = read_experiment(str(run.path / "config.yaml"))
    repeated = train(again, load_data(again), tmp_path / "again")
    assert without_times(repeated.history) == without_times(run.history)
    for one, other in zip(repeated.network().state_dict().values(), run.network().state_dict().values(), strict=True):
        assert torch.equal(one, other)


def test_an_existing_run_is_not_touched(trained: tuple[Run, GraphData]) -> None:
    run, data = trained
    before = {path.name: path.read_bytes() for path in run.path.iterdir()}
    with pytest.raises(RunError, match=r"already holds a run.*--resume"):
        train(run.config, data, run.path)
    with pytest.raises(RunError, match=r"begun with training\.protocol\.max_epochs = 30, not 31"):
        train(override(run.config, [EPOCHS(31)]), data, run.path, resume=True)
    assert train(run.config, data, run.path, resume=True).summary == run.summary
    assert {path.name: path.read_bytes() for path in run.path.iterdir()} == before


@pytest.mark.parametrize("task, metric", [("binary", "roc_auc"), ("multiclass", "accuracy")])
def test_classes_are_learned(prepared: Prepared, tmp_path: Path, task: str, metric: str) -> None:
    run = train(*prepared(task, EPOCHS(25), "training.protocol.lr=1e-2", "model.dropout=0"), tmp_path / "run")
    assert run.summary["metric"] == metric
    assert run.summary["reported"]["train"][metric] > (0.9 if metric == "roc_auc" else 80)


@pytest.mark.parametrize("preset", ["zinc/pna-lspe", "zinc/san-lspe", "moltox21/graphit", "zinc/gatedgcn-lspe-posloss"])
def test_every_kind_of_network_trains(prepared: Prepared, tmp_path: Path, preset: str) -> None:
    extra = ["model.towers=2", "model.edge_dim=4"] if "pna" in preset else []
    extra += ["model.heads=2"] if "san" in preset or "graphit" in preset else []
    k = "model.k=4" if "lspe" in preset else "model.k=0"
    experiment, data = prepared("regression", EPOCHS(4), *extra, k, preset=preset)
    run = train(experiment, data, tmp_path / "run")
    losses = [row["train_loss"] for row in run.history]
    assert losses[-1] < losses[0]


def test_the_papers_protocol_lowers_the_rate_on_a_plateau_and_stops_below_the_minimum(
    prepared: Prepared, tmp_path: Path
) -> None:
    experiment, data = prepared("regression", EPOCHS(40))
    protocol = "training.protocol={kind: paper, lr: 0.5, factor: 0.1, patience: 1, min_lr: 0.004, max_epochs: 40}"
    run = train(override(experiment, [protocol]), data, tmp_path / "run")
    rates = [row["lr"] for row in run.history]
    losses = [row["val_loss"] for row in run.history]
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5), factor=0.1, patience=1
    )
    expected = [0.5]
    for loss in losses[:-1]:
        scheduler.step(loss)
        expected.append(scheduler.get_last_lr()[0])
    assert rates == pytest.approx(expected)
    assert run.summary["stopped"] == "the learning rate fell below its minimum"
    assert len(rates) < 40


def test_time_limits_end_a_run(prepared: Prepared, tmp_path: Path) -> None:
    experiment, data = prepared("regression", EPOCHS(50), "training.protocol.max_hours=1e-9")
    run = train(experiment, data, tmp_path / "run")
    assert (run.summary["epochs"], run.summary["stopped"]) == (1, "1e-09 hours had passed")


def test_weights_of_another_run_are_a_start(trained: tuple[Run, GraphData], prepared: Prepared, tmp_path: Path) -> None:
    start = trained[0].network()
    still = ["training.protocol.lr=1e-12", "training.protocol.ema=0", EPOCHS(1)]
    experiment, data = prepared("multiclass", *still)
    run = train(experiment, data, tmp_path / "run", start=start)
    ours, theirs = run.network().state_dict(), start.state_dict()
    assert torch.allclose(ours["layers.0.A1.weight"], theirs["layers.0.A1.weight"], atol=1e-9)
    assert ours["head.out.weight"].shape != theirs["head.out.weight"].shape
    assert torch.allclose(ours["head.hidden.1.weight"], theirs["head.hidden.1.weight"], atol=1e-9)


STRUCTURE = ("model.lspe=false", "model.final=structure")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ([], ["model.hidden_dim=20"], "width 16, here 20"),
        ([], ["model.normalize_encoding=true"], "normalize_encoding False, here True"),
        ([], ["model.layers=3"], "number of layers 2, here 3"),
        (["model.layers=3"], [], "number of layers 3, here 2"),
        ([], ["model.k=5"], "k 4, here 5"),
        ([], ["model.encoding=lappe"], "encoding rwpe, here lappe"),
        ([], STRUCTURE, "lspe True, here False; final"),
        (STRUCTURE, [], "lspe False, here True; final"),
        ([], ["model={name: pna, layers: 2, hidden_dim: 16, edge_dim: 4}"], "kind of layer GatedGCN, here PNA"),
        (
            ["model={name: san, layers: 2, hidden_dim: 16, heads: 4}"],
            ["model={name: san, layers: 2, hidden_dim: 16, heads: 2}"],
            "heads 4, here 2",
        ),
        (
            ["model={name: pna, layers: 2, hidden_dim: 16, edge_dim: 4, delta: 1}"],
            ["model={name: pna, layers: 2, hidden_dim: 16, edge_dim: 6, delta: 1}"],
            r"layers\.0\.\S+message\.weight \[1, 16, 36\], here \[1, 16, 38\]",
        ),
    ],
)
def test_weights_of_another_network_are_no_start(
    prepared: Prepared, tmp_path: Path, old: list[str], new: list[str], message: str
) -> None:
    experiment, _ = prepared("regression", *old)
    wanted, data = prepared("regression", *new)
    with pytest.raises(TrainingError, match=message):
        train(wanted, data, tmp_path / "run", start=build_network(experiment))
    assert not (tmp_path / "run").exists()


def test_other_features_are_a_start(tmp_path: Path, prepared: Prepared) -> None:
    experiment, data = prepared("regression", EPOCHS(1))
    other = override(experiment, ["features={kind: categorical, node_types: 9, edge_types: 4}"])
    notes: list[str] = []

    class Notes(Progress):
        def note(self, text: str) -> None:
            notes.append(text)

    train(experiment, data, tmp_path / "run", start=build_network(other), progress=Notes())
    [note] = notes
    assert note.startswith("not taken from the other run, where they have another shape: embedder.node_table.weight")
    assert "layers" not in note


def test_a_network_without_descriptors_is_a_start_of_one_with_them(prepared: Prepared) -> None:
    experiment, _ = prepared("regression")
    start, network = build_network(experiment), build_network(override(experiment, ["model.descriptors=rdkit"]))
    fresh = transfer(start, network)
    assert {name.partition(".")[0] for name in fresh} == {"descriptors", "head"}
    assert torch.equal(network.state_dict()["layers.0.A1.weight"], start.state_dict()["layers.0.A1.weight"])


def test_rows_with_a_weight_count_by_it(tables: dict[str, Path], tmp_path: Path) -> None:
    """Rows of weight zero change nothing: their targets may be anything."""
    lines = tables["regression"].read_text().splitlines()
    runs = []
    for name, wrong in (("a", "0"), ("b", "99999")):
        rows = [f"{line},1" for line in lines[1:]]
        rows[::4] = [f"{line.partition(',')[0]},{wrong},0" for line in lines[1::4]]
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([lines[0] + ",w", *rows]) + "\n")
        experiment = small.experiment(path, EPOCHS(2), "training.standardize=false", weight="w", targets=("y",))
        data = small.data_of(experiment)
        runs.append(train(experiment, data, tmp_path / name))
    assert [row["train_loss"] for row in runs[0].history] == [row["train_loss"] for row in runs[1].history]
    assert runs[0].history[0]["train_mae"] != runs[1].history[0]["train_mae"]


def test_a_loss_that_is_not_a_number_stops_and_names_the_graph(prepared: Prepared, tmp_path: Path) -> None:
    experiment, data = prepared("regression", EPOCHS(3), "training.standardize=false")
    bad = int(data.splits["train"][5])
    y = np.array(data.graphs.graph["y"])
    y[bad] = np.inf
    broken = _with_column(data, "y", y)
    with pytest.raises(TrainingError, match="lower the learning rate") as caught:
        train(experiment, broken, tmp_path / "run")
    loader = BatchLoader(data.split("train"), 8, shuffle=True, seed=41)
    step = next(number for number, part in enumerate(loader.indices()) if 5 in part)
    assert f"epoch 1, batch {step + 1}: graphs" in str(caught.value)
    assert str(bad) in str(caught.value).partition("graphs ")[2].partition(" of the data")[0].split(", ")


def _with_column(data: GraphData, name: str, values: np.ndarray) -> GraphData:
    return replace(data, graphs=replace(data.graphs, graph={**data.graphs.graph, name: values}))


def test_tensorboard_gets_every_epoch(prepared: Prepared, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    experiment, data = prepared("regression", EPOCHS(2))
    run = train(experiment, data, tmp_path / "run", tensorboard=True)
    events = accumulator.EventAccumulator(str(run.path / "tensorboard")).Reload()
    logged = [(event.step, event.value) for event in events.Scalars("val_mae")]
    assert logged == [(row["epoch"], pytest.approx(row["val_mae"])) for row in run.history]


def test_where_scoring_every_epoch_would_cost_too_much_the_training_score_is_left_out(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lspe.training.module.CHEAP_TO_SCORE", 10)
    run = train(*prepared("regression", EPOCHS(1)), tmp_path / "run")
    assert run.history[0]["train_mae"] is None
    assert run.summary["reported"]["train"]["mae"] is not None
