"""Trees on descriptors: what a chemist would use without a network, and a part of what tables are blended of.

There are several kinds: extremely randomised trees on RDKit's descriptors and Morgan counts and boosted trees on the
descriptors; of numbers, extremely randomised trees on the descriptors; of classes, random forests on the descriptors
and on the counts. They count alike until it is known how much each is worth (:meth:`Forest.weighed`). scikit-learn
grows them; kept are plain arrays, so that a file needs neither pickle nor the scikit-learn that wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lspe.data.errors import CorruptFileError
from lspe.data.packed.container import Array, ArrayWriter, open_arrays
from lspe.data.words import DescriptorKind, TaskKind
from lspe.forest.growing import Grower
from lspe.forest.trees import ARRAYS, Floats, TreeSum, trees_of_file

KINDS: tuple[DescriptorKind, ...] = ("rdkit", "morgan")
"""The descriptors that a forest takes, in the order of its columns."""


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
        grow = Grower(task, outputs, seed, threads)
        if task == "multiclass":
            return cls((grow.trees(columns, y.reshape(-1), weight),))
        targets = []
        for one in y.T:
            known = ~np.isnan(one)
            targets.append(grow.trees(columns[known], one[known], None if weight is None else weight[known]))
        return cls(tuple(targets))

    def predict(self, descriptors: Mapping[DescriptorKind, Array], extra: Array | None = None) -> Floats:
        """Values, or probabilities, [M, outputs]."""
        return np.asarray(np.tensordot(self.shares, self.predict_kinds(descriptors, extra), axes=1))

    def predict_kinds(self, descriptors: Mapping[DescriptorKind, Array], extra: Array | None = None) -> Floats:
        """The same of each kind of trees, [kinds, M, outputs]."""
        columns = _columns(descriptors, extra)
        each = [np.stack([trees.predict(columns) for trees in target]) for target in self.targets]
        return np.concatenate(each, axis=2)

    @property
    def shares(self) -> Floats:
        """How much each kind of trees counts, 1 in all."""
        shares = np.array([trees.share for trees in self.targets[0]])
        return shares / shares.sum()

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
                for name in ARRAYS:
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
                tuple(trees_of_file(arrays, f"{place}{number}/{kind}", **one) for kind, one in enumerate(target))
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


def _columns(descriptors: Mapping[DescriptorKind, Array], extra: Array | None) -> NDArray[np.float32]:
    """Numbers side by side, [M, E + 2254]; one that is not defined counts as 0."""
    parts = [descriptors[kind] for kind in KINDS] if extra is None else [extra, *(descriptors[kind] for kind in KINDS)]
    return np.concatenate([np.nan_to_num(part.astype(np.float32)) for part in parts], axis=1)
