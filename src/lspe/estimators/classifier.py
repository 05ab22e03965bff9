"""Classes, or yes/no labels, from molecules."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from lspe.data import DataError
from lspe.estimators.base import Estimator
from lspe.estimators.inputs import EstimatorTargets, names_of, number_targets


class LSPEClassifier(ClassifierMixin, Estimator):
    """The class of a molecule, or several yes/no labels, by a network with learned positions.

    >>> model = LSPEClassifier().fit(smiles, ["toxic", "harmless", ...])
    >>> model.predict_proba(["CCO"])

    Parameters and attributes are those of :class:`lspe.estimators.base.Estimator`.
    ``classes_`` holds the classes in the order of the columns of ``predict_proba``; of several labels a list of arrays.
    """

    classes_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any | None = None) -> Self:
        """Learn classes ``y`` [M], or labels [M, T] of 0, 1 and NaN (not known), of the molecules ``X``."""
        targets, classes = _targets(y)
        self._fit(X, targets, sample_weight)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """[M, classes]; of several labels [M, T], the probability of each being 1."""
        probabilities = self._predict(X)
        if self._has_labels or self.predictor_.task == "multiclass":
            return probabilities
        return np.stack([1 - probabilities, probabilities], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each, [M], or labels [M, T]."""
        probabilities = self.predict_proba(X)
        if self._has_labels:
            return (probabilities > 0.5).astype(np.int64)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any | None = None) -> float:
        """The share that is right; of several labels the share of known labels that are."""
        right = self.predict(X) == np.asarray(y)
        weights = np.ones(len(right)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if self._has_labels:
            known = ~np.isnan(np.asarray(y, dtype=np.float64))
            return float(np.average(right[known], weights=np.broadcast_to(weights[:, None], known.shape)[known]))
        return float(np.average(right, weights=weights))

    @property
    def _has_labels(self) -> bool:
        return isinstance(self.classes_, list)

    def _state_to_json(self) -> dict[str, Any]:
        if self._has_labels:
            return {"classes": None}
        return {"classes": self.classes_.tolist(), "type": self.classes_.dtype.str}

    def _state_from_json(self, values: dict[str, Any]) -> None:
        if values["classes"] is None:
            self.classes_ = [np.array([0, 1]) for _ in self.predictor_.task_names]
        else:
            dtype = "O" if values["type"] == "|O" else values["type"]
            self.classes_ = np.array(values["classes"], dtype=dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _targets(y: Any) -> tuple[EstimatorTargets, Any]:
    """What is to be learned, and the classes."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        targets = number_targets(y, "binary")
        return targets, [np.array([0, 1]) for _ in targets.names]
    values = values.reshape(-1)
    missing = [row for row, value in enumerate(values.tolist()) if value is None or value != value]
    if missing:
        raise DataError(
            f"y[{missing[0]}] is {values[missing[0]]}: a molecule without a class teaches nothing; leave it out"
        )
    check_classification_targets(values)
    classes, number = np.unique(values, return_inverse=True)
    if len(values) and len(classes) < 2:
        raise DataError(f"all molecules are of the class {classes.tolist()}; there is nothing to learn")
    names = names_of(y, 1)
    if classes.tolist() == [0, 1]:
        return EstimatorTargets("binary", number.reshape(-1, 1).astype(np.float64), names), classes
    return EstimatorTargets("multiclass", number.astype(np.int64), names, tuple(map(str, classes.tolist()))), classes
