"""How the trees of a forest are grown: by scikit-learn, of which plain arrays are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lspe.data.packed.container import Array
from lspe.data.words import DESCRIPTOR_WIDTH, TaskKind
from lspe.forest.trees import Floats, Link, TreeSum, put_together

_TREES = {"numbers": 200, "classes": 300}
_FEWEST_TREES = 60
_IN_LEAF = {"numbers": 1, "classes": 2}
"""The fewest molecules of a leaf: where classes are told, the share of yes of a single one is 0 or 1, and too sure."""
_MANY = {"numbers": 2000, "classes": 10_000}
"""Molecules beyond which half as many trees with larger leaves do, so that their file stays small."""
_IN_LEAF_OF_MANY = 3
_BOOSTED: dict[str, dict[str, Any]] = {
    "numbers": {"max_iter": 400, "max_leaf_nodes": 15, "min_samples_leaf": 5, "l2_regularization": 2.0},
    "classes": {"max_iter": 200, "max_leaf_nodes": 31, "min_samples_leaf": 10, "l2_regularization": 5.0},
}
"""Boosted trees learn slowly, each from a fifth of the columns: they are surer of less than by scikit-learn's defaults,
and right more often."""


@dataclass(frozen=True)
class Grower:
    """Grows trees for one target after the other."""

    task: TaskKind
    outputs: int
    seed: int
    threads: int

    @property
    def _told(self) -> Literal["numbers", "classes"]:
        return "numbers" if self.task == "regression" else "classes"

    def trees(self, columns: Array, y: Array, weight: Array | None) -> tuple[TreeSum, ...]:
        """All kinds, or as often a constant; where a class is missing, the first kind stands for boosted trees."""
        labels = np.unique(y)
        if len(labels) < 2:
            constant = self._constant(float(labels[0]) if len(labels) else 0.0)
            return (constant,) * (3 if self.task == "regression" else 4)
        width, border = columns.shape[1], columns.shape[1] - DESCRIPTOR_WIDTH["morgan"]
        everything, descriptors, counts = slice(0, width), slice(0, border), slice(border, width)
        grown = [self._forest(columns, everything, y, weight, randomised=True)]
        if self.task == "regression":
            grown.append(self._forest(columns, descriptors, y, weight, randomised=True))
        else:
            grown.append(self._forest(columns, descriptors, y, weight, randomised=False))
            grown.append(self._forest(columns, counts, y, weight, randomised=False))
        if self.task != "multiclass" or len(labels) == self.outputs:
            grown.append(self._boosted(columns[:, descriptors], y, weight))
        else:
            grown.append(grown[0])
        return tuple(grown)

    def _constant(self, label: float) -> TreeSum:
        start = np.array([label]) if self.task != "multiclass" else np.eye(self.outputs)[int(label)]
        return put_together([], np.zeros((0, len(start))), start, "identity")

    def _forest(self, columns: Array, of: slice, y: Array, weight: Array | None, *, randomised: bool) -> TreeSum:
        """Trees on some of the columns."""
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier

        targets = 1 if self.task == "multiclass" else self.outputs
        many = len(y) > _MANY[self._told]
        options: dict[str, Any] = {
            "n_estimators": max(_FEWEST_TREES, _TREES[self._told] // (2 * targets if many else targets)),
            "min_samples_leaf": _IN_LEAF_OF_MANY if many else _IN_LEAF[self._told],
            "random_state": self.seed,
            "n_jobs": self.threads,
        }
        if self.task == "regression":
            share = 0.1 if of.stop - of.start > DESCRIPTOR_WIDTH["morgan"] else 0.3
            model = ExtraTreesRegressor(max_features=share, **options).fit(columns[:, of], y, weight)
        else:
            kind = ExtraTreesClassifier if randomised else RandomForestClassifier
            model = kind(max_features="sqrt", **options).fit(columns[:, of], y, weight)
        values = [self._leaf_values(one.tree_.value, model) / len(model.estimators_) for one in model.estimators_]
        nodes = [
            (one.feature + of.start, one.threshold, one.children_left, one.children_right)
            for one in (tree.tree_ for tree in model.estimators_)
        ]
        return put_together(nodes, np.concatenate(values), np.zeros(values[0].shape[1]), "identity")

    def _leaf_values(self, value: Array, model: Any) -> Floats:
        """[nodes, K] of scikit-learn's [nodes, 1, classes]: a mean, the share of yes, or of each class."""
        if self.task == "regression":
            return np.asarray(value[:, 0, :1])
        total = value[:, 0].sum(axis=1, keepdims=True)
        shares = value[:, 0] / np.where(total > 0, total, 1.0)  # a leaf may hold only rows of weight 0
        if self.task == "binary":
            return np.asarray(shares[:, 1:])
        everything = np.zeros((len(shares), self.outputs))
        everything[:, model.classes_.astype(np.int64)] = shares
        return everything

    def _boosted(self, columns: Array, y: Array, weight: Array | None) -> TreeSum:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind = HistGradientBoostingRegressor if self.task == "regression" else HistGradientBoostingClassifier
        options = _BOOSTED[self._told]
        model = kind(learning_rate=0.04, max_features=0.2, early_stopping=False, random_state=self.seed, **options)
        model.fit(columns, y, sample_weight=weight)
        classes = self.outputs if self.task == "multiclass" else 1
        nodes, values = [], []
        for number, tree in enumerate(tree for iteration in model._predictors for tree in iteration):
            one = tree.nodes
            leaf = one["is_leaf"].astype(bool)
            left, right = (np.where(leaf, -1, one[side].astype(np.int64)) for side in ("left", "right"))
            nodes.append((one["feature_idx"], one["num_threshold"], left, right))
            values.append(np.zeros((len(one), classes)))
            values[-1][:, number % classes] = one["value"]
        link: dict[TaskKind, Link] = {"regression": "identity", "binary": "sigmoid", "multiclass": "softmax"}
        trees = put_together(nodes, np.concatenate(values), np.zeros(classes), link[self.task])
        first = columns[:1]
        sums = model.predict(first) if self.task == "regression" else model.decision_function(first)
        start = np.asarray(sums, dtype=np.float64).reshape(-1) - trees.add_up(first)[0]
        return TreeSum(**{**vars(trees), "start": start})
