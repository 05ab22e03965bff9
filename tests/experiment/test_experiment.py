"""Experiments: read, changed, written, and fitted to their data."""

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
    list_presets,
    override,
    read_experiment,
    with_epochs,
    with_protocol,
    with_table,
)
from lspe.experiment.data import fit_to_data, load_data, mean_log_degree
from lspe.features import CategoricalFeatures

ZINC = "zinc/gatedgcn-lspe"


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_survives_its_own_yaml(name: str, tmp_path: Path) -> None:
    experiment = read_experiment(name)
    (tmp_path / "config.yaml").write_text(experiment.to_yaml())
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
    experiment = with_table(read_experiment("zinc/pna-lspe"), TableSource(path=str(tables["binary"])))
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
        ConfigError, match=r"binary task with 12 outputs, but multiclass\.csv is a multiclass task with 3"
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


def test_delta_is_the_papers_on_zinc(shared_data: Path) -> None:
    assert mean_log_degree(load_benchmark("zinc", shared_data).split("train")) == pytest.approx(1.12059, abs=5e-6)


def test_the_yaml_says_everything() -> None:
    values = yaml.safe_load(read_experiment("nci/gatedgcn-lspe").to_yaml())
    assert values["training"]["protocol"]["ema"] == 0.999
    assert values["model"]["dropout"] == 0.0
    assert values["seed"] == 41
