"""Every preset builds, counts what the paper counts, and says clearly what is wrong with a bad one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lspe.config import ConfigError
from lspe.experiment import build_network, load_preset

PAPER_PARAMETERS = {
    "zinc/gatedgcn": 504309,
    "zinc/gatedgcn-lappe": 505011,
    "zinc/gatedgcn-lspe": 522870,
    "zinc/gatedgcn-lspe-posloss": 522870,
    "zinc/pna": 369235,
    "zinc/pna-lspe": 503061,
    "zinc/san": 501314,
    "zinc/san-lspe": 588066,
    "zinc/graphit": 501313,
    "zinc/graphit-lspe": 588065,
    "moltox21/gatedgcn": 1003739,
    "moltox21/gatedgcn-lappe": 1004355,
    "moltox21/gatedgcn-lspe": 1063821,
    "moltox21/pna": 5244849,
    "moltox21/pna-lspe": 5357393,
    "moltox21/pna-lspe-posloss": 5357393,
    "moltox21/san": 957871,
    "moltox21/san-lspe": 1051017,
    "moltox21/graphit": 957870,
    "moltox21/graphit-lspe": 1051788,
    "molpcba/gatedgcn": 1008263,
    "molpcba/gatedgcn-lappe": 1008879,
    "molpcba/gatedgcn-lspe": 1068721,
    "molpcba/pna": 6550839,
    "molpcba/pna-lspe": 6521029,
    "zinc/ablation-rwpe-input": 505947,
    "zinc/ablation-rwpe-final": 515249,
    "zinc/ablation-lappe-lspe-h": 516722,
    "zinc/ablation-lappe-lspe-hp": 520734,
    "zinc/ablation-rwpe-lspe-h": 518150,
    "imdb-binary/gatedgcn": 87122,
    "imdb-binary/gatedgcn-lspe": 91470,
    "imdb-multi/gatedgcn": 87139,
    "imdb-multi/gatedgcn-lspe": 91483,
    "cifar10/gatedgcn": 104357,
    "cifar10/gatedgcn-lspe": 107237,
}


@pytest.fixture(scope="module")
def listed() -> dict[str, dict]:
    command = [sys.executable, "-m", "lspe", "presets", "--json"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {row["name"]: row for row in json.loads(out)}


def test_parameters_equal_the_paper(listed: dict[str, dict]) -> None:
    counted = {name: listed[name]["parameters"] for name in PAPER_PARAMETERS}
    assert counted == PAPER_PARAMETERS
    assert {name: listed[name]["paper_parameters"] for name in PAPER_PARAMETERS} == PAPER_PARAMETERS


def test_what_goes_beyond_the_paper_has_no_more_parameters_than_others_took(listed: dict[str, dict]) -> None:
    assert listed["zinc/gatedgcn-lspe-plus"]["parameters"] <= 525_000
    assert listed["cifar10/gatedgcn-lspe-plus"]["parameters"] <= 110_000
    assert listed["moltox21/gatedgcn-lspe-plus"]["parameters"] <= listed["moltox21/gatedgcn-lspe"]["parameters"]


def test_list_is_complete(listed: dict[str, dict]) -> None:
    expected = {"csl/gatedgcn", "csl/gatedgcn-lspe", "nci/gatedgcn-lspe", *PAPER_PARAMETERS}
    assert expected <= set(listed)
    keys = {"name", "dataset", "model", "encoding", "lspe", "layers", "hidden_dim", "parameters", "paper"}
    for name, row in listed.items():
        assert keys <= set(row), name
        assert row["dataset"] == name.split("/")[0] or row["paper"] is None
        assert row["lspe"] == ("-lspe" in name) or row["paper"] is None
    zinc = listed["zinc/gatedgcn-lspe"]["paper"]
    assert (zinc["metric"], zinc["test"], zinc["sd"], zinc["epochs"]) == ("mae", 0.093, 0.003, 440.75)


def test_built_network_has_what_was_counted(listed: dict[str, dict]) -> None:
    """The count is taken without memory; a network with memory has the same."""
    for name in ("zinc/pna-lspe", "zinc/san-lspe", "moltox21/gatedgcn-lspe"):
        network = build_network(name)
        assert sum(parameter.numel() for parameter in network.parameters()) == listed[name]["parameters"]


def own(tmp_path: Path, **changes: object) -> str:
    values = load_preset("zinc/gatedgcn-lspe").model_dump(mode="json", exclude={"name"})
    for place, value in changes.items():
        *parents, key = place.split("__")
        part = values
        for parent in parents:
            part = part[parent]
        part[key] = value
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(values))
    return str(path)


def test_own_file_round_trip(tmp_path: Path) -> None:
    preset = load_preset(own(tmp_path, model__layers=3))
    assert preset.name == "own"
    assert preset.model.layers == 3
    assert preset.training == load_preset("zinc/gatedgcn-lspe").training


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__layer": 3}, "own.yaml: model.gatedgcn: unknown key 'layer': did you mean 'layers'?"),
        ({"training__batchsize": 3}, "own.yaml: training: unknown key 'batchsize': did you mean 'batch_size'?"),
        ({"modle": {}}, "own.yaml: top level: unknown key 'modle': did you mean 'model'?"),
        ({"model__dropout": 1.5}, r"own.yaml: model.gatedgcn.dropout: .*less than 1 \(got 1.5\)"),
        (
            {"model__readout": "median"},
            r"own.yaml: model.gatedgcn.readout: .*'mean', 'sum', 'max', 'mean\+sum', 'none', 'edge' or 'link'",
        ),
        ({"model__name": "gcn"}, r"own.yaml: model: unknown name 'gcn': did you mean 'gatedgcn'\?"),
    ],
)
def test_bad_files_are_explained(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_preset(own(tmp_path, **changes))


def test_unknown_names_are_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'zinc/gatedgcn-lspe'"):
        load_preset("zinc/gatedgcn-lpse")
    with pytest.raises(ConfigError, match="there is no such file"):
        load_preset(str(tmp_path / "none.yaml"))
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [1")
    with pytest.raises(ConfigError, match="not YAML"):
        load_preset(str(bad))
    bad.write_text("just text")
    with pytest.raises(ConfigError, match="expected keys and values"):
        load_preset(str(bad))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__encoding": "none"}, "own.yaml: model.gatedgcn: .*need an encoding"),
        ({"model__lspe": False}, "own.yaml: model.gatedgcn: .*needs lspe=True"),
        ({"model__k": 0}, "own.yaml: model.gatedgcn: .*k ≥ 1"),
    ],
)
def test_combinations_that_make_no_network_are_explained(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_preset(own(tmp_path, **changes))


def test_what_no_network_can_be_built_from_is_a_wrong_configuration() -> None:
    """A copy of a model is not checked again, and a layer may refuse what no model knows of."""
    preset = load_preset("zinc/gatedgcn-lspe")
    broken = preset.model_copy(update={"model": preset.model.model_copy(update={"lspe": False})})
    with pytest.raises(ConfigError, match=r"zinc/gatedgcn-lspe: the network cannot be built: .*needs lspe=True"):
        build_network(broken)
