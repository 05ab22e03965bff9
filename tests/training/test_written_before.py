"""Run folders, checkpoints and packed sets that version 0.1 wrote are read, and say what they said then.

The archive holds a run on a table of molecules, killed halfway; a packed set of rings with node types; a finished run
on that set; and what version 0.1 said of them.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from lspe.data import GraphData
from lspe.experiment import load_data, read_experiment
from lspe.features import CategoricalFeatures, ContinuousFeatures, NoFeatures, OGBFeatures, read_features
from lspe.predict import load
from lspe.training import Run, fit

ARCHIVE = Path(__file__).with_name("written_by_0.1.tar.xz")


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What version 0.1 said, in a folder with all that it wrote."""
    filtered = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python before 3.11.4 has none
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, **filtered)
    monkeypatch.chdir(tmp_path)
    return json.loads(Path("said.json").read_text())


def test_a_run_predicts_as_it_did(said: Any) -> None:
    before = said["predictions of the interrupted run"]
    assert load("interrupted").predict(list(before)).ravel().tolist() == pytest.approx(list(before.values()), rel=1e-5)
    assert max(before.values()) - min(before.values()) > 10, "a network that says one thing of all would prove nothing"


def test_a_packed_set_and_a_run_on_node_types_are_read(said: Any) -> None:
    data = GraphData.open(Path("rings.lspe")).with_encoding("rwpe", 2)
    run = Run.open("rings")
    assert data.features == run.interface.features == CategoricalFeatures(node_types=3, edge_types=2)
    assert run.evaluate(data.graphs).scores == pytest.approx(said["scores on all rings"], rel=1e-5)


def test_an_interrupted_run_goes_on_to_the_end_it_would_have_had(said: Any) -> None:
    folder = Path("interrupted")
    epochs = len(Run.open(folder).history)
    experiment = read_experiment(str(folder))
    run = fit(experiment, load_data(experiment, processes=1), folder, resume=True, device="cpu", threads=1)
    assert (epochs, len(run.history)) == (20, 40)
    assert run.summary["reported"]["test"] == pytest.approx(said["test score of the run, not interrupted"], rel=1e-3)


@pytest.mark.parametrize(
    "before, features",
    [
        ({"kind": "ogb"}, OGBFeatures()),
        ({"kind": "none"}, NoFeatures()),
        ({"kind": "continuous", "node_dim": 5, "edge_dim": 1}, ContinuousFeatures(node_features=5, edge_features=1)),
        (
            {"kind": "categorical", "atom_types": 3, "bond_types": 5, "atom_vocabulary": ["C", "O"], "unknown": True},
            CategoricalFeatures(node_types=3, edge_types=5, vocabulary=("C", "O"), unknown=True),
        ),
    ],
)
def test_features_are_read_as_they_were_written(before: dict[str, Any], features: Any) -> None:
    every = {"atom_types": None, "bond_types": None, "atom_vocabulary": [], "unknown": False}
    assert read_features({**every, "node_dim": None, "edge_dim": None, **before}) == features
    assert read_features(json.loads(features.model_dump_json())) == features
