"""Trees on descriptors: what a chemist would use without a network, and a part of what tables are blended of.

There are several kinds: extremely randomised trees on RDKit's descriptors and Morgan counts and boosted trees on the
descriptors; of numbers, extremely randomised trees on the descriptors; of classes, random forests on the descriptors
and on the counts. They count alike until it is known how much each is worth (:meth:`Forest.weighed`). scikit-learn
grows them; kept are plain arrays, so that a file needs neither pickle nor the scikit-learn that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lspe.data.errors import CorruptFileError
from lspe.data.packed.container import Array, ArrayWriter, open_arrays
from lspe.data.words import DESCRIPTOR_WIDTH, DescriptorKind, TaskKind

KINDS: tuple[DescriptorKind, ...] = ("rdkit", "morgan")
"""The descriptors that a forest takes, in the order of its columns."""

Floats = NDArray[np.float64]
Link = Literal["identity", "sigmoid", "softmax"]

_TREES = 200
_FEWEST_TREES = 60
_MANY = 2000
"""Molecules beyond which half as many trees with larger leaves do, so that their file stays small."""
_FEWEST_IN_LEAF = 3
"""Molecules of a leaf where classes are told: the share of yes in a smaller one is 0 or 1, and surer than it may be."""
_BOOSTED: dict[str, dict[str, Any]] = {
    "numbers": {"max_iter": 400, "max_leaf_nodes": 15, "min_samples_leaf": 5, "l2_regularization": 2.0},
    "classes": {"max_iter": 200, "max_leaf_nodes": 31, "min_samples_leaf": 10, "l2_regularization": 5.0},
}
"""Boosted trees learn slowly, each from a fifth of the columns: they are surer of less than by scikit-learn's defaults,
and right more often."""
_ROWS_AT_ONCE = 1000
_ARRAYS = ("roots", "feature", "threshold", "left", "right", "value", "start")


@dataclass(frozen=True)
class TreeSum:
    """The sum of many trees, then a link: [M, columns] → [M, K].

    In node i a row goes ``left[i]`` where its column ``feature[i]`` is at most ``threshold[i]``, else ``right[i]``.
    A leaf leads to itself and adds ``value[i]`` [K]; ``start`` [K] is what all rows begin with. ``share``: how much the
    sum counts beside those of the other kinds.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    start: Floats
    depth: int
    link: Link
    share: float = 1.0

    def predict(self, columns: Array) -> Floats:
        """Values, or probabilities, [M, K]."""
        total = self.add_up(columns)
        if self.link == "sigmoid":
            return 1 / (1 + np.exp(-total))
        if self.link == "softmax":
            shifted = np.exp(total - total.max(axis=1, keepdims=True))
            return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
        return total

    def add_up(self, columns: Array) -> Floats:
        """The sum before the link, [M, K]."""
        total = np.tile(self.start, (len(columns), 1))
        for begin in range(0, len(columns), _ROWS_AT_ONCE):
            some = columns[begin : begin + _ROWS_AT_ONCE]
            row = np.arange(len(some))[:, None]
            node = np.tile(self.roots, (len(some), 1))
            for _ in range(self.depth):
                low = some[row, self.feature[node]] <= self.threshold[node]
                node = np.where(low, self.left[node], self.right[node])
            total[begin : begin + _ROWS_AT_ONCE] += self.value[node].sum(axis=1)
        return total


@dataclass(frozen=True)
class Forest:
    """Trees for each target; a prediction is the mean over the kinds of trees, weighed by their shares.

    >>> forest = Forest.fit({"rdkit": ..., "morgan": ...}, y, "regression", outputs=1)
    >>> forest.predict({"rdkit": ..., "morgan": ...})  # [M, outputs]
    """

    targets: tuple[tuple[TreeSum, ...], ...]

    @classmethod
    def fit(
        cls,
        descriptors: Mapping[DescriptorKind, Array],
        y: Array,
        task: TaskKind,
        *,
        outputs: int,
        extra: Array | None = None,
        weight: Array | None = None,
        seed: int = 0,
        threads: int = 1,
    ) -> Forest:
        """Learn targets ``y`` as graphs have them: [M, T] with NaN where one is not known, or [M] classes.

        ``extra`` [M, E] are further numbers of each molecule.
        """
        columns = _columns(descriptors, extra)
        grow = _Grower(task, outputs, seed, threads)
        if task == "multiclass":
            return cls((grow.trees(columns, y.reshape(-1), weight),))
        targets = []
        for one in y.T:
            known = ~np.isnan(one)
            targets.append(grow.trees(columns[known], one[known], None if weight is None else weight[known]))
        return cls(tuple(targets))

    def predict(self, descriptors: Mapping[DescriptorKind, Array], extra: Array | None = None) -> Floats:
        """Values, or probabilities, [M, outputs]."""
        shares = [trees.share for trees in self.targets[0]]
        return np.asarray(np.average(self.predict_kinds(descriptors, extra), axis=0, weights=shares))

    def predict_kinds(self, descriptors: Mapping[DescriptorKind, Array], extra: Array | None = None) -> Floats:
        """The same of each kind of trees, [kinds, M, outputs]."""
        columns = _columns(descriptors, extra)
        each = [np.stack([trees.predict(columns) for trees in target]) for target in self.targets]
        return np.concatenate(each, axis=2)

    def weighed(self, shares: Sequence[float]) -> Forest:
        """The same trees, of which each kind counts as much as its share says, for all targets."""
        return Forest(
            tuple(
                tuple(replace(trees, share=share) for trees, share in zip(target, shares, strict=True))
                for target in self.targets
            )
        )

    def arrays(self) -> dict[str, Array]:
        """Everything as numbers, for a file."""
        arrays = {}
        for number, target in enumerate(self.targets):
            for kind, trees in enumerate(target):
                for name in _ARRAYS:
                    array = getattr(trees, name)
                    small = np.float64 if array.dtype.kind == "f" else np.int16 if name == "feature" else np.int32
                    arrays[f"{number}/{kind}/{name}"] = array.astype(small)
        return arrays

    def about(self) -> list[list[dict[str, Any]]]:
        """What belongs to :meth:`arrays`, as plain values."""
        return [
            [{"depth": trees.depth, "link": trees.link, "share": trees.share} for trees in target]
            for target in self.targets
        ]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], about: Sequence[Sequence[Any]], place: str = "") -> Forest:
        """The inverse of :meth:`arrays`, whose names begin with ``place``, and :meth:`about`."""
        return cls(
            tuple(
                tuple(_of_file(arrays, f"{place}{number}/{kind}", **one) for kind, one in enumerate(target))
                for number, target in enumerate(about)
            )
        )

    def save(self, path: Path) -> None:
        """Write everything into one file."""
        with ArrayWriter(path) as writer:
            for name, array in self.arrays().items():
                writer.append(name, array)
            writer.finish({"forest": self.about()})

    @classmethod
    def open(cls, path: Path) -> Forest:
        """What :meth:`save` wrote."""
        file = open_arrays(path)
        try:
            return cls.from_arrays(file.arrays, file.meta["forest"])
        except (LookupError, TypeError) as error:
            raise CorruptFileError(f"{path} holds no forest ({error}): put back a copy of it, or train again") from None


def _of_file(arrays: Mapping[str, Array], place: str, *, depth: int, link: Link, share: float = 1.0) -> TreeSum:
    parts: dict[str, Any] = {}
    for name in _ARRAYS:
        array = arrays[f"{place}/{name}"]
        parts[name] = array.astype(np.int64) if array.dtype.kind == "i" else array
    return TreeSum(depth=depth, link=link, share=share, **parts)


def _columns(descriptors: Mapping[DescriptorKind, Array], extra: Array | None) -> NDArray[np.float32]:
    """Numbers side by side, [M, E + 2254]; one that is not defined counts as 0."""
    parts = [descriptors[kind] for kind in KINDS] if extra is None else [extra, *(descriptors[kind] for kind in KINDS)]
    return np.concatenate([np.nan_to_num(part.astype(np.float32)) for part in parts], axis=1)


@dataclass(frozen=True)
class _Grower:
    """Grows trees for one target after the other."""

    task: TaskKind
    outputs: int
    seed: int
    threads: int

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
        return _put_together([], np.zeros((0, len(start))), start, "identity")

    def _forest(self, columns: Array, of: slice, y: Array, weight: Array | None, *, randomised: bool) -> TreeSum:
        """Trees on some of the columns."""
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier

        targets = 1 if self.task == "multiclass" else self.outputs
        many = len(y) > _MANY
        options: dict[str, Any] = {
            "n_estimators": max(_FEWEST_TREES, _TREES // (2 * targets if many else targets)),
            "min_samples_leaf": _FEWEST_IN_LEAF if many or self.task != "regression" else 1,
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
        return _put_together(nodes, np.concatenate(values), np.zeros(values[0].shape[1]), "identity")

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
        options = _BOOSTED["numbers" if self.task == "regression" else "classes"]
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
        trees = _put_together(nodes, np.concatenate(values), np.zeros(classes), link[self.task])
        first = columns[:1]
        sums = model.predict(first) if self.task == "regression" else model.decision_function(first)
        start = np.asarray(sums, dtype=np.float64).reshape(-1) - trees.add_up(first)[0]
        return TreeSum(**{**vars(trees), "start": start})


def _put_together(nodes: Sequence[tuple[Array, ...]], values: Floats, start: Floats, link: Link) -> TreeSum:
    """Trees one after the other; each is (feature, threshold, left, right), children of leaves are −1."""
    sizes = np.array([len(one[0]) for one in nodes], dtype=np.int64)
    begins = np.cumsum(sizes) - sizes
    joined = [np.concatenate([np.zeros(0), *(one[part] for one in nodes)]) for part in range(2)]
    children = [np.concatenate([np.zeros(0, dtype=np.int64), *_numbered(nodes, begins, part)]) for part in (2, 3)]
    is_leaf = np.concatenate([np.zeros(0, dtype=bool), *(one[2] < 0 for one in nodes)])
    return TreeSum(
        roots=begins,
        feature=np.where(is_leaf, 0, joined[0]).astype(np.int64),
        threshold=np.where(is_leaf, 0.0, joined[1]),
        left=children[0],
        right=children[1],
        value=np.where(is_leaf[:, None], values, 0.0),
        start=start,
        depth=_depth(begins, *children),
        link=link,
    )


def _numbered(nodes: Sequence[tuple[Array, ...]], begins: Array, part: int) -> Iterator[Array]:
    """Children numbered over all trees, a leaf's child being itself."""
    for one, begin in zip(nodes, begins.tolist(), strict=True):
        child = one[part].astype(np.int64)
        yield np.where(child < 0, np.arange(len(child)), child) + begin


def _depth(roots: Array, left: Array, right: Array) -> int:
    """Steps from the roots to the furthest leaf."""
    level, depth = roots, 0
    while len(level := level[left[level] != level]):
        level = np.concatenate([left[level], right[level]])
        depth += 1
    return depth
