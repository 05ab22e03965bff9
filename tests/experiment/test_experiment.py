"""Experiments: read, changed, written, and fitted to their data."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lspe.config import ConfigError
from lspe.data import GraphData, load_benchmark
from lspe.experiment import (
    Experiment,
    TableSource,
    build_network,
    list_presets,
    load_preset,
    override,
    read_experiment,
    with_epochs,
    with_own_data,
    with_protocol,
)
from lspe.experiment.data import DROPOUT, fit_to_data, load_data, mean_log_degree
from lspe.features import CategoricalFeatures

ZINC = "zinc/gatedgcn-lspe"


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_survives_its_own_yaml(name: str, tmp_path: Path) -> None:
    experiment = read_experiment(name)
    (tmp_path / "config.yaml").write_text(experiment.to_yaml(tmp_path))
    assert read_experiment(str(tmp_path / "config.yaml")) == experiment
    assert read_experiment(str(tmp_path)) == experiment


@pytest.mark.parametrize(
    "setting, place, value",
    [
        ("model.layers=4", "model.layers", 4),
        ("training.protocol.lr=3e-4", "training.protocol.lr", 3e-4),
        ("training.positional_loss={alpha: 1, weight: 0.1}", "training.positional_loss.alpha", 1.0),
        ("seed=7", "seed", 7),
        ("model.final=structure", "model.final", "structure"),
    ],
)
def test_values_are_set_by_their_place(setting: str, place: str, value: object) -> None:
    result: object = override(read_experiment(ZINC), [setting])
    for part in place.split("."):
        result = getattr(result, part)
    assert result == value


@pytest.mark.parametrize(
    "setting, message",
    [
        ("model.layer=4", "unknown key 'layer': did you mean 'layers'"),
        ("modle.layers=4", "unknown key 'modle': did you mean 'model'"),
        ("model.layers=many", "layers: .*integer.*'many'"),
        ("model.layers=0", "greater than or equal to 1"),
        ("model.layers", "write place=value"),
        ("model.layers.deep=4", "model.layers is a value"),
        ("training.protocol.lr.x=4", "training.protocol.lr is a value"),
    ],
)
def test_a_setting_that_cannot_be_is_explained(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        override(read_experiment(ZINC), [setting])


GATED, PNA, SAN = "zinc/gatedgcn-lspe", "zinc/pna-lspe", "zinc/san"
IMPOSSIBLE = [
    (GATED, "model.lspe", False, r"model\.gatedgcn: final='structure\+position' needs lspe=True.*choose"),
    (GATED, "model.encoding", "none", r"model\.gatedgcn: .*need an encoding to start from: choose 'rwpe'"),
    (GATED, "model.k", 0, r"model\.gatedgcn: encoding 'rwpe' needs a width k ≥ 1, not 0"),
    (GATED, "model.final", "structure+encoding", r"model\.gatedgcn: .* with it use 'structure\+position'"),
    (GATED, "model.final", "everything", r"model\.gatedgcn\.final: .*'structure\+position'.*got 'everything'"),
    (GATED, "model.readout", "none", r"top level: model\.readout='none' gives .* per node.*use 'mean'"),
    (GATED, "model.layers", 10**9, r"model\.gatedgcn\.layers: .*less than or equal to 10000 \(got 1000000000\)"),
    (GATED, "model.hidden_dim", 10**20, r"model\.gatedgcn\.hidden_dim: "),
    (PNA, "model.towers", 7, r"model\.pna: 7 towers cannot share hidden_dim=55 evenly: choose a number that divides"),
    (
        PNA,
        "model.aggregators",
        ["mean", "median"],
        r"model\.pna\.aggregators: unknown name 'median'",
    ),
    (PNA, "model.aggregators", [], r"model\.pna\.aggregators: .*at least 1"),
    (PNA, "model.scalers", ["amplify"], r"model\.pna\.scalers: unknown name 'amplify': did you mean 'amplification'"),
    (SAN, "model.heads", 7, r"model\.san: 7 heads cannot share hidden_dim=64 evenly"),
    (GATED, "seed", -1, r"seed: .*greater than or equal to 0 \(got -1\)"),
    (GATED, "seed", 10**20, r"seed: .*less than 9223372036854775808"),
    (GATED, "seeds", [1, -1], r"seeds\.1: .*greater than or equal to 0 \(got -1\)"),
    (GATED, "fold", -1, r"fold: .*greater than or equal to 0 \(got -1\)"),
]


@pytest.mark.parametrize("preset, place, value, message", IMPOSSIBLE)
def test_what_cannot_be_is_said_wherever_it_is_written(
    preset: str, place: str, value: object, message: str, tmp_path: Path
) -> None:
    experiment = read_experiment(preset)
    with pytest.raises(ConfigError, match=f"^--set: {message}"):
        override(experiment, [f"{place}={value}"])
    *path, key = place.split(".")
    values = group = experiment.model_dump(mode="json")
    for part in path:
        group = group[part]
    group[key] = value
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(ConfigError, match=rf"mine\.yaml: .*{message}"):
        read_experiment(str(tmp_path / "mine.yaml"))
    with pytest.raises(ConfigError, match=f"^Experiment: {message}"):
        Experiment(**values)


def test_a_network_that_no_machine_holds_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise RuntimeError("can't allocate memory: you tried to allocate 4000000000000 bytes")

    monkeypatch.setattr(sys.modules[build_network.__module__], "build", no_room)
    with pytest.raises(ConfigError, match=r"zinc/gatedgcn-lspe: the network cannot be built: can't allocate memory"):
        build_network(read_experiment(GATED))


def test_a_score_that_the_task_does_not_have_is_explained(
    prepared: Callable[..., tuple[Experiment, GraphData]],
) -> None:
    _, data = prepared("regression")
    experiment = override(read_experiment("zinc/gatedgcn-lspe"), ["features={kind: ogb}", "task.metric=accuracy"])
    with pytest.raises(ConfigError, match=r"a regression task has no task\.metric 'accuracy': choose among mae, "):
        fit_to_data(experiment, data)


@pytest.mark.parametrize("text", ["[", "{a: b", "'", "!!python/object:os.system x", "2024-13-99", "[" * 100_000])
def test_a_setting_that_is_no_yaml_is_explained(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--set model\.layers="):
        override(read_experiment(ZINC), [f"model.layers={text}"])


@pytest.mark.parametrize(
    "content", [b"\x00\x01\xff", "name: Löslichkeit".encode("latin-1"), b"a: " + b"[" * 100_000, b"- 1"]
)
@pytest.mark.parametrize("read", [read_experiment, load_preset])
def test_a_file_that_is_no_yaml_is_explained(content: bytes, read: Callable[[str], object], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"mine\.yaml: (not|expected)"):
        read(str(tmp_path / "mine.yaml"))


def test_long_values_are_cut_off_in_messages() -> None:
    for source in ("a" * 300, "b/" * 5000, "c" * 300 + ".yaml"):
        with pytest.raises(ConfigError, match=r"unknown preset|no such file") as caught:
            read_experiment(source)
        assert len(str(caught.value)) < 2000
    with pytest.raises(ConfigError, match="…") as caught:
        override(read_experiment(ZINC), [f"model.layers={'x' * 100_000}"])
    assert len(str(caught.value)) < 500


def test_sources_that_are_none_are_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'zinc/gatedgcn"):
        read_experiment("zinc/gatedcgn")
    with pytest.raises(ConfigError, match="no such file"):
        read_experiment(str(tmp_path / "mine.yaml"))
    (tmp_path / "mine.yaml").write_text("model: [")
    with pytest.raises(ConfigError, match="not YAML"):
        read_experiment(str(tmp_path / "mine.yaml"))
    (tmp_path / "mine.yaml").write_text("just words")
    with pytest.raises(ConfigError, match="expected keys and values"):
        read_experiment(str(tmp_path / "mine.yaml"))


def test_the_other_protocol_keeps_learning_rate_and_report() -> None:
    paper = read_experiment("moltox21/pna")
    fast = with_protocol(paper, "fast")
    assert fast.training.protocol.kind == "fast"
    assert (fast.training.protocol.lr, fast.training.protocol.report) == (5e-4, "best")
    assert with_protocol(paper, "paper") is paper
    assert with_epochs(fast, 7).training.protocol.max_epochs == 7


def test_any_presets_network_can_learn_ones_own_table(tables: dict[str, Path]) -> None:
    experiment = with_own_data(read_experiment("zinc/pna-lspe"), TableSource(path=str(tables["binary"])))
    assert (experiment.paper, experiment.training.standardize) == (None, True)
    data = load_data(experiment, processes=1)
    fitted = fit_to_data(experiment, data)
    assert (fitted.task.kind, fitted.task.outputs, fitted.task.metric) == ("binary", 2, "roc_auc")
    assert fitted.features.kind == "ogb"
    assert fitted.model.name == "pna"
    assert fitted.model.delta == pytest.approx(mean_log_degree(data.split("train")))


def test_data_that_do_not_fit_are_explained(prepared: Callable[..., tuple[Experiment, GraphData]]) -> None:
    _, data = prepared("multiclass")
    with pytest.raises(ConfigError, match=r"takes features .* but the data zinc have .*'ogb'"):
        fit_to_data(read_experiment(ZINC), data)
    with pytest.raises(
        ConfigError,
        match=r"binary task of graphs with 12 outputs, but multiclass\.csv is a multiclass task of graphs with 3",
    ):
        fit_to_data(read_experiment("moltox21/gatedgcn"), data)
    with pytest.raises(ConfigError, match=r"--data table\.csv"):
        load_data(read_experiment("own/gatedgcn-lspe"))


def test_the_size_of_a_vocabulary_made_from_the_data_is_theirs(
    prepared: Callable[..., tuple[Experiment, GraphData]],
) -> None:
    _, data = prepared("regression")
    made = CategoricalFeatures(node_types=9, edge_types=5, vocabulary=tuple("CNO"), unknown=True)
    fitted = fit_to_data(read_experiment("nci/gatedgcn-lspe"), replace(data, features=made))
    assert fitted.features == CategoricalFeatures(node_types=9, edge_types=5)


def test_dropout_may_be_left_to_the_task(prepared: Callable[..., tuple[Experiment, GraphData]]) -> None:
    for task, expected in (("regression", DROPOUT["numbers"]), ("binary", DROPOUT["classes"])):
        experiment, data = prepared(task, "model.dropout=null", "model.head_dropout=null")
        model = fit_to_data(experiment, data).model
        assert (model.dropout, model.head_dropout) == expected
        experiment, _ = prepared(task, "model.dropout=0.2", "model.head_dropout=null")
        assert fit_to_data(experiment, data).model.dropout == 0.2


def test_delta_is_the_papers_on_zinc(shared_data: Path) -> None:
    assert mean_log_degree(load_benchmark("zinc", shared_data).split("train")) == pytest.approx(1.12059, abs=5e-6)


def test_the_yaml_says_everything() -> None:
    values = yaml.safe_load(read_experiment("nci/gatedgcn-lspe").to_yaml(Path()))
    assert values["training"]["protocol"]["ema"] == 0.999
    assert values["model"]["dropout"] == 0.0
    assert values["seed"] == 41
