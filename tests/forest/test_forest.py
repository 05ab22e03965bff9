"""Trees as plain arrays: they say what scikit-learn's say, survive a file, and take what tables hold."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lspe.data.errors import CorruptFileError
from lspe.data.words import DescriptorKind, TaskKind
from lspe.forest import Forest
from lspe.forest.forest import _columns
from lspe.forest.growing import Grower

RNG = np.random.default_rng(0)
DESCRIPTORS: dict[DescriptorKind, NDArray[np.generic]] = {
    "rdkit": RNG.normal(size=(90, 206)).astype(np.float32),
    "morgan": RNG.poisson(0.3, size=(90, 2048)).astype(np.uint8),
}
NUMBERS = np.asarray(DESCRIPTORS["rdkit"])[:, :1] ** 2 + 1
YES_NO = (np.median(NUMBERS) < NUMBERS).astype(np.float32)
CLASSES = np.digitize(NUMBERS[:, 0], [1.3, 2.0])


@pytest.mark.parametrize(
    "task, y, outputs", [("regression", NUMBERS, 1), ("binary", YES_NO, 1), ("multiclass", CLASSES, 3)]
)
def test_it_says_what_scikit_learn_says(task: TaskKind, y: NDArray[np.generic], outputs: int) -> None:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
    )

    forest = Forest.fit(DESCRIPTORS, y, task, outputs=outputs)
    columns, target = _columns(DESCRIPTORS, None), y.reshape(-1)
    descriptors = columns[:, :206]
    boosting = {"early_stopping": False, "random_state": 0, "learning_rate": 0.04, "max_features": 0.2}
    leaves = {"min_samples_leaf": 2, "random_state": 0}
    if task == "regression":
        extra = ExtraTreesRegressor(200, max_features=0.1, random_state=0).fit(columns, target)
        simple = ExtraTreesRegressor(200, max_features=0.3, random_state=0).fit(descriptors, target)
        slow = {"max_iter": 400, "max_leaf_nodes": 15, "min_samples_leaf": 5, "l2_regularization": 2.0}
        boosted = HistGradientBoostingRegressor(**boosting, **slow).fit(descriptors, target)
        each = [extra.predict(columns), simple.predict(descriptors), boosted.predict(descriptors)]
    else:
        extra = ExtraTreesClassifier(300, **leaves).fit(columns, target)
        random = RandomForestClassifier(300, **leaves).fit(descriptors, target)
        counted = RandomForestClassifier(300, **leaves).fit(columns[:, 206:], target)
        slow = {"max_iter": 200, "max_leaf_nodes": 31, "min_samples_leaf": 10, "l2_regularization": 5.0}
        boosted = HistGradientBoostingClassifier(**boosting, **slow).fit(descriptors, target)
        each = [extra.predict_proba(columns), random.predict_proba(descriptors)]
        each += [counted.predict_proba(columns[:, 206:]), boosted.predict_proba(descriptors)]
        if task == "binary":
            each = [one[:, 1] for one in each]
    np.testing.assert_allclose(forest.predict(DESCRIPTORS).squeeze(), np.mean(each, axis=0), rtol=1e-9, atol=1e-9)
    shares = np.arange(len(each)) / sum(range(len(each)))
    weighed = forest.weighed(shares.tolist()).predict(DESCRIPTORS).squeeze()
    np.testing.assert_allclose(weighed, np.average(each, axis=0, weights=shares), rtol=1e-9, atol=1e-9)


def test_a_file_gives_back_the_same_forest(tmp_path: Path) -> None:
    forest = Forest.fit(DESCRIPTORS, NUMBERS, "regression", outputs=1).weighed([0.2, 0.3, 0.5])
    forest.save(tmp_path / "forest.lspe")
    np.testing.assert_array_equal(
        Forest.open(tmp_path / "forest.lspe").predict(DESCRIPTORS), forest.predict(DESCRIPTORS)
    )


def test_an_altered_or_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "forest.lspe"
    Forest.fit(DESCRIPTORS, YES_NO, "binary", outputs=1).save(path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(bytes(damaged))
    with pytest.raises(CorruptFileError):
        Forest.open(path)


def test_missing_labels_single_labels_and_undefined_descriptors() -> None:
    y = np.concatenate([YES_NO, np.zeros_like(YES_NO)], axis=1)
    y[:40, 0] = np.nan
    descriptors = {**DESCRIPTORS, "rdkit": np.where(RNG.random((90, 206)) < 0.1, np.nan, DESCRIPTORS["rdkit"])}
    predicted = Forest.fit(descriptors, y, "binary", outputs=2).predict(descriptors)
    assert np.isfinite(predicted).all()
    assert (predicted[:, 1] == 0).all()
    known = ~np.isnan(y[:, 0])
    assert ((predicted[known, 0] > 0.5) == (y[known, 0] > 0.5)).mean() > 0.95


def test_a_class_that_a_part_does_not_have() -> None:
    grown = Grower("multiclass", 4, 0, 1).trees(_columns(DESCRIPTORS, None), CLASSES, None)
    predicted = np.mean([trees.predict(_columns(DESCRIPTORS, None)) for trees in grown], axis=0)
    assert predicted.shape == (90, 4)
    assert (predicted[:, 3] == 0).all()
    np.testing.assert_allclose(predicted.sum(axis=1), 1)
