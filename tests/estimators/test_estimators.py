"""The contract of scikit-learn's estimators.

scikit-learn's own ``check_estimator`` feeds arrays of numbers, which are no molecules; those of its checks that need no
data are run, and what the others look for is tested here with SMILES.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from ogb.utils import smiles2graph
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import CalcNumRings
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from torch_geometric.data import Data

import lspe
from lspe import LSPEClassifier, LSPERegressor
from lspe.config import ConfigError
from lspe.data import DataError
from lspe.data.benchmarks.nci import source_file
from lspe.errors import UserError
from lspe.estimators import base

SMALL: dict[str, Any] = {"epochs": 2, "layers": 1, "hidden_dim": 8, "k": 4, "batch_size": 16}


def molecules(count: int) -> list[str]:
    """The first molecules of RDKit's own file that are small and whole."""
    chosen: list[str] = []
    for line in source_file().read_text().splitlines():
        text = line.split("\t")[0]
        if len(text) < 25 and "." not in text and Chem.MolFromSmiles(text) is not None:
            chosen.append(text)
        if len(chosen) == count:
            break
    return chosen


SMILES = molecules(48)
MOLS = [Chem.MolFromSmiles(text) for text in SMILES]
SIZE = np.array([mol.GetNumHeavyAtoms() for mol in MOLS], dtype=float)
HAS_RING = np.array([CalcNumRings(mol) > 0 for mol in MOLS])


@pytest.fixture(scope="module")
def regressor() -> LSPERegressor:
    return LSPERegressor(**SMALL).fit(SMILES, SIZE)


@pytest.fixture(scope="module")
def classifier() -> LSPEClassifier:
    return LSPEClassifier(**SMALL).fit(SMILES, np.where(HAS_RING, "ring", "chain"))


CHECKS = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", [LSPERegressor, LSPEClassifier])
def test_scikit_learns_checks_that_need_no_data(kind: type, check: str) -> None:
    getattr(estimator_checks, check)(kind.__name__, kind())


@pytest.mark.parametrize("kind", [LSPERegressor, LSPEClassifier])
def test_init_only_stores(kind: type) -> None:
    given = {name: object() for name in kind().get_params()}
    made = kind(**given)
    assert vars(made) == given


def test_kinds() -> None:
    assert is_regressor(LSPERegressor())
    assert is_classifier(LSPEClassifier())


def test_a_clone_has_the_parameters_and_nothing_learned(regressor: LSPERegressor) -> None:
    copy = clone(regressor)
    assert copy.get_params() == regressor.get_params()
    assert not hasattr(copy, "predictor_")


def test_parameters_can_be_set_and_read_back() -> None:
    values = {"preset": "zinc/pna-lspe", "epochs": 7, "lr": 0.25, "settings": ["model.readout=sum"], "networks": 3}
    made = LSPERegressor().set_params(**values)
    assert {name: made.get_params()[name] for name in values} == values


@pytest.mark.parametrize("method", ["predict", "predict_proba", "save", "score"])
def test_what_is_not_fitted_says_so(method: str, tmp_path: Path) -> None:
    arguments = {"save": [tmp_path / "model"], "score": [["CCO"], [1]]}.get(method, [["CCO"]])
    with pytest.raises(NotFittedError):
        getattr(LSPEClassifier(), method)(*arguments)


def test_a_device_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="there is no device 'cuda' here"):
        LSPERegressor(**SMALL, device="cuda").fit(SMILES, SIZE)


def test_fitting_again_gives_the_same_whatever_was_drawn_before(regressor: LSPERegressor) -> None:
    torch.manual_seed(123)
    before = torch.get_rng_state()
    again = clone(regressor).fit(SMILES, SIZE)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(again.predict(SMILES), regressor.predict(SMILES))
    first = regressor.predict(SMILES)
    np.testing.assert_array_equal(clone(regressor).fit(SMILES, SIZE).fit(SMILES, SIZE).predict(SMILES), first)
    other = clone(regressor).set_params(random_state=1).fit(SMILES, SIZE)
    assert not np.allclose(other.predict(SMILES), first)


def test_the_random_state_may_be_a_generator() -> None:
    one, other = (LSPERegressor(**SMALL, random_state=np.random.RandomState(5)).fit(SMILES, SIZE) for _ in range(2))
    np.testing.assert_array_equal(one.predict(SMILES), other.predict(SMILES))


def test_a_pickle_holds_the_weights(classifier: LSPEClassifier) -> None:
    copy = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(copy.predict_proba(SMILES), classifier.predict_proba(SMILES))
    assert copy.classes_.tolist() == ["chain", "ring"]


def test_folds_in_two_processes_are_the_folds_in_one() -> None:
    scores = [cross_val_score(LSPERegressor(**SMALL), SMILES, SIZE, cv=2, n_jobs=jobs) for jobs in (1, 2)]
    np.testing.assert_allclose(*scores, rtol=1e-5)
    assert np.isfinite(scores[0]).all()


def test_a_grid_search_finds_what_learns() -> None:
    search = GridSearchCV(LSPERegressor(**SMALL), {"lr": [1e-9, 0.01]}, cv=2, error_score="raise")
    search.fit(np.array(SMILES), SIZE)
    assert search.best_params_ == {"lr": 0.01}
    assert search.best_estimator_.predict(["CCO"]).shape == (1,)


def test_a_pipeline_hands_molecules_on(classifier: LSPEClassifier) -> None:
    pipeline = make_pipeline(FunctionTransformer(_without_names), LSPEClassifier(**SMALL))
    named = [f"{text} molecule {number}" for number, text in enumerate(SMILES)]
    pipeline.fit(named, np.where(HAS_RING, "ring", "chain"))
    np.testing.assert_array_equal(pipeline.predict_proba(named), classifier.predict_proba(SMILES))
    pipeline.set_params(lspeclassifier__epochs=1)
    assert pipeline[-1].epochs == 1


def _without_names(texts: list[str]) -> list[str]:
    return [text.split()[0] for text in texts]


@pytest.mark.parametrize("form", [np.array, pd.Series, lambda texts: pd.DataFrame({"smiles": texts}), tuple])
def test_molecules_come_in_many_forms(regressor: LSPERegressor, form: Any) -> None:
    np.testing.assert_array_equal(regressor.predict(form(SMILES)), regressor.predict(SMILES))


def test_graphs_teach_what_their_smiles_teach(regressor: LSPERegressor) -> None:
    """OGB's own graphs of the same molecules lead to the same network."""
    graphs = []
    for text in SMILES:
        graph = smiles2graph(text)
        x, edge_index, edge_attr = (torch.from_numpy(graph[key]) for key in ("node_feat", "edge_index", "edge_feat"))
        graphs.append(Data(x=x, edge_index=edge_index, edge_attr=edge_attr, y=torch.zeros(1)))
    from_graphs = clone(regressor).fit(graphs, SIZE)
    np.testing.assert_allclose(from_graphs.predict(graphs), regressor.predict(SMILES), rtol=1e-4)
    assert cross_val_score(clone(regressor), graphs, SIZE, cv=2).shape == (2,)


def test_graphs_with_types_of_their_own() -> None:
    ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    types = np.arange(64) % 4
    graphs = [Data(x=torch.full((3,), int(number)), edge_index=ring) for number in types]
    model = LSPERegressor(layers=1, hidden_dim=32, k=4, epochs=40, dropout=0.0, lr=0.01, batch_size=16)
    assert model.fit(graphs, types).score(graphs, types) > 0.9
    with pytest.raises(DataError, match=r"4 node types .* but the graphs have 8"):
        model.predict([Data(x=torch.full((3,), 7), edge_index=ring)])


def test_it_learns() -> None:
    model = LSPERegressor(layers=2, hidden_dim=16, k=4, epochs=60, batch_size=16, lr=0.01).fit(SMILES, SIZE)
    assert model.score(SMILES, SIZE) > 0.9
    rings = LSPEClassifier(layers=2, hidden_dim=16, k=4, epochs=40, batch_size=16, lr=0.01).fit(SMILES, HAS_RING)
    assert rings.score(SMILES, HAS_RING) > 0.95
    assert rings.classes_.tolist() == [False, True]


def test_labels_that_are_not_known_do_not_count() -> None:
    both = np.stack([SIZE, -3 * SIZE], axis=1)
    both[1::2, 1] = np.nan
    model = LSPERegressor(layers=2, hidden_dim=16, k=4, epochs=60, batch_size=16, lr=0.01).fit(SMILES, both)
    predicted = model.predict(SMILES)
    assert np.corrcoef(predicted[1::2, 1], -3 * SIZE[1::2])[0, 1] > 0.9
    expected = np.mean([r2_score(SIZE, predicted[:, 0]), r2_score(both[::2, 1], predicted[::2, 1])])
    assert model.score(SMILES, both) == pytest.approx(expected)


def test_weights_say_who_is_listened_to() -> None:
    smiles, y = SMILES * 2, np.concatenate([SIZE, 30 - SIZE])
    model = LSPERegressor(layers=2, hidden_dim=16, k=4, epochs=30, batch_size=32, lr=0.01)
    for weights, sign in (([1, 0], 1), ([0, 1], -1)):
        model.fit(smiles, y, sample_weight=np.repeat(weights, len(SMILES)))
        assert sign * np.corrcoef(model.predict(SMILES), SIZE)[0, 1] > 0.8


def test_scores_are_scikit_learns(regressor: LSPERegressor, classifier: LSPEClassifier) -> None:
    weights = np.linspace(0.1, 2, len(SMILES))
    expected = r2_score(SIZE, regressor.predict(SMILES), sample_weight=weights)
    assert regressor.score(SMILES, SIZE, weights) == pytest.approx(expected)
    truth = np.where(HAS_RING, "ring", "chain")
    expected = accuracy_score(truth, classifier.predict(SMILES), sample_weight=weights)
    assert classifier.score(SMILES, truth, weights) == pytest.approx(expected)


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["no", "yes"], [-1, 1], ["a", "b", "c"], [3, 5, 9]])
def test_classes_of_every_type(labels: list[Any]) -> None:
    y = np.array(labels)[np.arange(len(SMILES)) % len(labels)]
    model = LSPEClassifier(**SMALL).fit(SMILES, y)
    probabilities = model.predict_proba(SMILES)
    assert model.classes_.tolist() == sorted(labels)
    assert probabilities.shape == (len(SMILES), len(labels))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.predict(SMILES).tolist() == model.classes_[probabilities.argmax(axis=1)].tolist()


def test_several_labels_with_gaps() -> None:
    y = np.stack([HAS_RING, np.median(SIZE) < SIZE], axis=1).astype(float)
    model = LSPEClassifier(layers=2, hidden_dim=16, k=4, epochs=80, batch_size=16, lr=0.01)
    assert cross_val_score(model.set_params(epochs=2), SMILES, y, cv=2, scoring="roc_auc").shape == (2,)
    y[::3, 0] = np.nan
    model.set_params(epochs=80).fit(SMILES, pd.DataFrame(y, columns=["ring", "large"]))
    assert model.predictor_.task_names == ("ring", "large")
    assert set(np.unique(model.predict(SMILES))) == {0, 1}
    known = ~np.isnan(y)
    assert model.score(SMILES, y) == pytest.approx((model.predict(SMILES) == y)[known].mean())
    assert model.score(SMILES, y) > 0.9


def test_an_ensemble_is_the_mean_of_its_networks() -> None:
    model = LSPERegressor(**SMALL, networks=3).fit(SMILES, SIZE)
    each = [lspe.predict.Predictor([one]).predict(SMILES) for one in model.predictor_.members]
    np.testing.assert_allclose(model.predict(SMILES), np.mean(each, axis=0))
    assert np.std(each, axis=0).min() > 0
    mean, sd = model.predict(SMILES, return_std=True)
    np.testing.assert_allclose(mean, np.mean(each, axis=0))
    np.testing.assert_allclose(sd, np.std(each, axis=0), rtol=1e-6)


@pytest.mark.parametrize("networks", [1, 2])
def test_a_saved_estimator_is_one_again_and_a_run(tmp_path: Path, networks: int) -> None:
    model = LSPEClassifier(**SMALL, networks=networks).fit(SMILES, np.where(HAS_RING, "ring", "chain"))
    model.save(tmp_path / "model")
    loaded = LSPEClassifier.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(SMILES), model.predict(SMILES))
    run = lspe.load(tmp_path / "model")
    np.testing.assert_allclose(run.predict(SMILES), model.predict_proba(SMILES))
    assert run.class_names == ("chain", "ring")
    assert {path.suffix for path in tmp_path.rglob("*.*")} == {".json", ".yaml", ".ckpt"}
    with pytest.raises(UserError, match="not empty"):
        model.save(tmp_path / "model")
    with pytest.raises(UserError, match="is of a LSPEClassifier"):
        LSPERegressor.load(tmp_path / "model")


def test_several_labels_are_saved_too(tmp_path: Path) -> None:
    model = LSPEClassifier(**SMALL).fit(SMILES, np.stack([HAS_RING, ~HAS_RING], axis=1))
    model.save(tmp_path / "model")
    loaded = LSPEClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(SMILES), model.predict_proba(SMILES))
    assert [one.tolist() for one in loaded.classes_] == [[0, 1], [0, 1]]


def test_a_folder_without_an_estimator(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no estimator"):
        LSPERegressor.load(tmp_path)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff\xfe", b"[1]", b"", b'{"format": 1}'])
def test_a_damaged_estimator_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    (tmp_path / base._FILE).write_bytes(content)
    with pytest.raises(UserError, match=base._FILE):
        LSPERegressor.load(tmp_path)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        (["CCO", "C(C"], [1, 2], None, r"X\[1\] 'C\(C' is not a SMILES string"),
        (["CCO", None], [1, 2], None, r"X\[1\] None is no SMILES"),
        (["CCO"], [1, 2], None, "X has 1 molecules, y has 2 rows"),
        ([], [], None, "X is empty"),
        ("CCO", [1], None, "X is str"),
        (np.zeros((3, 4)), [1, 2, 3], None, r"shape \(3, 4\)"),
        (["CCO", "CC"], [1, NAN], None, r"y\[1\] is NaN"),
        (["CCO", "CC"], [1, INF], None, r"y\[1\] = inf is infinite"),
        (["CCO", "CC"], [[1, NAN], [2, NAN]], None, "'y1' has no label at all"),
        (["CCO", "CC"], ["a", "b"], None, "does not hold numbers"),
        (["CCO", "CC"], [[[1]], [[2]]], None, "one number a molecule"),
        (["CCO", "CC"], [1, 2], [1, -1], r"sample_weight\[1\] is -1"),
        (["CCO", "CC"], [1, 2], [1], r"shape \(1,\)"),
        (["CCO", "CC"], [1, 2], [0, 0], "nothing to learn"),
    ],
)
def test_bad_input_is_named(X: Any, y: Any, weight: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        LSPERegressor(**SMALL).fit(X, y, weight)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "a"], "all molecules are of the class"),
        ([1, None], r"y\[1\] is None"),
        ([[0, 2], [1, 0]], r"y\[0, 1\] = 2 is neither 0 nor 1"),
    ],
)
def test_bad_classes_are_named(y: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        LSPEClassifier(**SMALL).fit(["CCO", "CC"], y)


def test_numbers_are_no_classes() -> None:
    with pytest.raises(ValueError, match="continuous"):
        LSPEClassifier(**SMALL).fit(["CCO", "CC", "C"], [0.3, 1.7, 2.2])


def test_what_cannot_be_read_is_refused_and_the_way_round_works(regressor: LSPERegressor) -> None:
    with pytest.raises(DataError, match=r"X\[1\] 'C\(C' .*predictor_"):
        regressor.predict(["CCO", "C(C"])
    assert np.isnan(regressor.predictor_.predict(["CCO", "C(C"])).tolist() == [False, True]


def test_parameters_that_cannot_be_are_named() -> None:
    with pytest.raises(UserError, match="networks is 0"):
        LSPERegressor(networks=0).fit(SMILES, SIZE)
    with pytest.raises(ConfigError, match="did you mean 'layers'"):
        LSPERegressor(settings=["model.layer=2"]).fit(SMILES, SIZE)
    with pytest.raises(ConfigError, match="unknown preset"):
        LSPERegressor(preset="own/gatedgcn-lspee").fit(SMILES, SIZE)


@pytest.mark.parametrize("preset", ["zinc/pna-lspe", "zinc/san-lspe", "moltox21/gatedgcn"])
def test_every_network_may_be_chosen(preset: str) -> None:
    settings = ["model.towers=2"] if "zinc/pna" in preset else []
    model = LSPERegressor(preset, epochs=1, layers=1, hidden_dim=8, settings=settings).fit(SMILES, SIZE)
    assert np.isfinite(model.predict(SMILES)).all()
