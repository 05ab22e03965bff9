"""Predictions and positions of a run in the explorer, against the network itself."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch

from lspe.data import smiles_to_graphs
from lspe.encodings import RandomWalkEncoding
from lspe.errors import UserError
from lspe.explore.trained import Trained, principal_components, relative_change, watched_positions
from lspe.features import OGBFeatures
from lspe.nn.topology import Topology
from lspe.predict import load
from lspe.predict.intervals import Intervals
from tests.members import member, save

IBUPROFEN = "CC(C)Cc1ccc(cc1)C(C)C(=O)O"


@pytest.fixture(scope="module")
def run_client(address_with_run: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address_with_run, timeout=60) as made:
        yield made


def test_the_page_knows_its_run(run_client: httpx.Client) -> None:
    run = run_client.get("/api/about").json()["run"]
    assert run == {
        "name": "logS",
        "networks": 1,
        "task": "regression",
        "targets": ["logS"],
        "layers": 2,
        "learns_positions": True,
    }


def test_predictions_are_those_of_predict(run_client: httpx.Client, run_folder: Path) -> None:
    model = load(run_folder)
    for smiles in (IBUPROFEN, "C", "[Na+].CCO"):
        values = run_client.post("/api/predict", json={"smiles": smiles}).raise_for_status().json()["values"]
        assert values == [
            {
                "name": "logS",
                "value": pytest.approx(float(model.predict(smiles)[0]), abs=1e-6),
                "sd": None,
                "low": None,
                "high": None,
            }
        ]


def test_intervals_stand_beside_the_values(run_folder: Path) -> None:
    trained = Trained(run_folder)
    trained.predictor.intervals = Intervals((0.7,), (0.0,))
    (value,) = trained.predict("CCO").values
    assert (value.low, value.high) == (pytest.approx(value.value - 0.7), pytest.approx(value.value + 0.7))


def test_explanations_are_those_of_the_model(run_client: httpx.Client, run_folder: Path) -> None:
    answer = run_client.post("/api/explain", json={"smiles": f"[Na+].{IBUPROFEN}"}).raise_for_status().json()
    expected = load(run_folder).explain(f"[Na+].{IBUPROFEN}")
    (value,) = answer["values"]
    assert value["name"] == "logS"
    np.testing.assert_allclose(value["atoms"], expected.atoms[:, 0], atol=1e-6)
    np.testing.assert_allclose(value["positions"], expected.positions[:, 0], atol=1e-6)
    np.testing.assert_allclose(value["bonds"], expected.bonds[:, 0], atol=1e-6)
    assert [[edge["first"], edge["second"]] for edge in answer["edges"]] == expected.ends.tolist()
    assert sum(part["value"] for part in value["parts"]) == pytest.approx(value["value"], abs=1e-6)
    assert sum(value["atoms"]) == pytest.approx(
        next(part["value"] for part in value["parts"] if part["name"] == "atoms"), abs=1e-6
    )
    assert [node["label"] for node in answer["nodes"]] == list(expected.symbols)  # those of the fragment that counts
    assert answer["networks"] == 1


def test_the_nearest_training_molecules_come_with_what_is_known_of_them(
    run_client: httpx.Client, run_folder: Path
) -> None:
    answer = run_client.post("/api/explain", json={"smiles": IBUPROFEN}).raise_for_status().json()
    expected = load(run_folder).explain(IBUPROFEN).neighbours
    assert [one["smiles"] for one in answer["near"]] == [one.smiles for one in expected]
    assert answer["near"][0]["smiles"] == "CC(C(=O)O)c1ccccc1"
    for one, neighbour in zip(answer["near"], expected, strict=True):
        assert one["labels"] == [{"name": "logS", "value": pytest.approx(neighbour.labels[0])}]
        assert one["tanimoto"] == pytest.approx(neighbour.tanimoto)
        assert one["picture"]["strokes"]


def test_positions_are_those_of_the_layers(run_client: httpx.Client, run_folder: Path) -> None:
    answer = run_client.post("/api/positions", json={"smiles": IBUPROFEN}).raise_for_status().json()
    network = load(run_folder).members[0].network
    data = RandomWalkEncoding(network.k)(smiles_to_graphs([IBUPROFEN], OGBFeatures()).graphs[0])
    p = network.embed_p(data.random_walk_pe)
    by_hand = [p]
    h, e = network.embedder.nodes(data), network.embedder.edges(data)
    with torch.no_grad():
        for layer in network.layers:
            h, p, e = layer(h, p, e, Topology.of(data))
            by_hand.append(p)
    expected = torch.stack(by_hand).detach().double().numpy()
    layers = np.array(answer["layers"])
    assert layers.shape == (3, 15, 12)
    centred = expected - expected.mean(1, keepdims=True)
    # components are an orthogonal change of axes: distances between atoms stay, up to what is left out
    gram = np.einsum("lnd,lmd->lnm", centred, centred)
    np.testing.assert_allclose(np.einsum("lnd,lmd->lnm", layers, layers), gram, atol=0.02 * np.abs(gram).max())
    assert answer["explained"] > 0.97
    moved = [
        np.linalg.norm(b - a, axis=1).mean() / np.linalg.norm(b, axis=1).mean() for a, b in itertools.pairwise(expected)
    ]
    np.testing.assert_allclose(answer["change"], moved, rtol=1e-3)
    assert len(answer["nodes"]) == 15


def test_atoms_are_those_of_the_fragment_that_counts(run_client: httpx.Client) -> None:
    answer = run_client.post("/api/positions", json={"smiles": "[Na+].CCO"}).raise_for_status().json()
    assert [node["label"] for node in answer["nodes"]] == ["C", "C", "O"]
    assert len(answer["layers"][0]) == 3


def test_questions_at_once_do_not_see_each_others_layers(run_client: httpx.Client) -> None:
    questions = [("positions" if i % 2 else "predict", {"smiles": "C" * (1 + i % 7) + "O"}) for i in range(40)]

    def ask(question: tuple[str, dict[str, str]]) -> dict[str, object]:
        answer: dict[str, object] = run_client.post(f"/api/{question[0]}", json=question[1]).raise_for_status().json()
        return answer

    alone = [ask(question) for question in questions]
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(ask, questions)) == alone


def test_what_the_run_cannot_take_is_said_in_words(run_client: httpx.Client) -> None:
    for path in ("predict", "explain", "positions"):
        for smiles, words in (("C(", "'C('"), ("C" * 201, "at most 200"), ("csl-11-2", "not a SMILES")):
            answer = run_client.post(f"/api/{path}", json={"smiles": smiles})
            assert answer.status_code == 422
            assert words in answer.json()["error"]


def test_ensembles_have_a_spread_and_classes_probabilities(tmp_path: Path) -> None:
    classes = ("low", "high")
    for seed in (1, 2):
        save(tmp_path / "both" / f"seed{seed}", "multiclass", classes=classes, seed=seed)
    save(tmp_path / "both", "multiclass", classes=classes)
    trained = Trained(tmp_path / "both")
    values = trained.predict("CCO").values
    assert trained.about().networks == 2
    assert [value.name for value in values] == ["low", "high"]
    assert sum(value.value for value in values) == pytest.approx(1)
    assert all(value.sd is not None and value.sd > 0 for value in values)


def test_a_network_without_positions_predicts_and_says_that_it_has_none(tmp_path: Path) -> None:
    settings = ("model.lspe=false", "model.final=structure")
    trained = Trained(save(tmp_path / "plain", "regression", *settings))
    assert not trained.about().learns_positions
    assert len(trained.predict("CCO").values) == 1
    with pytest.raises(UserError, match="learns no positions"):
        trained.positions("CCO")


def test_watching_leaves_no_trace() -> None:
    network = member().network
    with watched_positions(network) as seen:
        pass
    assert seen == []
    assert not any(module._forward_hooks for module in network.modules())


def test_components_of_points_on_a_line_are_their_places_on_it() -> None:
    rng = np.random.default_rng(0)
    places, axis = rng.normal(size=(4, 6)), rng.normal(size=9)
    p = places[:, :, None] * axis + rng.normal(size=(4, 1, 9))  # each layer somewhere else
    components, explained = principal_components(p, 3)
    assert explained == pytest.approx(1)
    centred = (places - places.mean(1, keepdims=True)) * np.linalg.norm(axis)
    np.testing.assert_allclose(np.abs(components[:, :, 0]), np.abs(centred), atol=1e-10)
    np.testing.assert_allclose(components[:, :, 1:], 0, atol=1e-10)


def test_one_atom_and_equal_atoms_have_components_of_zero() -> None:
    for p in (np.ones((3, 1, 5)), np.ones((3, 4, 5))):
        components, explained = principal_components(p)
        assert explained == 1
        assert (components == 0).all()
    assert relative_change(np.zeros((3, 2, 4))) == [0, 0]
