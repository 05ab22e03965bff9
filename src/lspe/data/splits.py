"""Dividing a set into training, validation and test part, or into folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lspe.data.errors import DataError
from lspe.data.packed.pointers import Index

Splits = dict[str, Index]
Fractions = tuple[float, float, float]
NAMES = ("train", "val", "test")


def split_sizes(count: int, fractions: Fractions) -> tuple[int, int, int]:
    """How many of `count` fall into each part: validation and test are rounded down but not to zero."""
    if min(fractions) < 0 or not np.isclose(sum(fractions), 1):
        raise DataError(f"the parts of a split must add up to 1, not {' + '.join(map(str, fractions))}")
    wanted = sum(fraction > 0 for fraction in fractions)
    if count < wanted:
        raise DataError(f"{count} rows cannot be divided into {wanted} parts")
    val, test = (max(int(count * fraction + 1e-9), int(fraction > 0)) for fraction in fractions[1:])
    return count - val - test, val, test


def in_order(sizes: Sequence[int]) -> Splits:
    """The first ``sizes[0]`` graphs train, the next ``sizes[1]`` validate, the rest test."""
    parts = np.split(np.arange(sum(sizes), dtype=np.int64), np.cumsum(sizes)[:-1])
    return dict(zip(NAMES, parts, strict=True))


def by_code(codes: ArrayLike) -> Splits:
    """Divide by a code a graph: 0 is training, 1 validation, 2 test."""
    return {name: np.flatnonzero(np.asarray(codes) == code) for code, name in enumerate(NAMES)}


def random_split(
    count: int,
    fractions: Fractions = (0.8, 0.1, 0.1),
    *,
    seed: int = 0,
    labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Splits:
    """A random division with a fixed seed; with `labels`, each part has the classes in the same proportions; with
    `groups`, no group is in two parts.
    """
    if groups is not None:
        return _random_split_of_groups(np.asarray(groups), fractions, seed, labels)
    order = _shuffled(count, seed, labels)
    return {name: np.sort(order[part]) for name, part in in_order(split_sizes(count, fractions)).items()}


def _random_split_of_groups(groups: Index, fractions: Fractions, seed: int, labels: ArrayLike | None) -> Splits:
    """Groups are divided as single graphs would be, each with the label of its first one."""
    found, first, group = np.unique(groups, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    of_groups = None if labels is None else np.asarray(labels)[first[by_first]]
    part = np.empty(len(found), dtype=np.int64)
    for number, members in enumerate(random_split(len(found), fractions, seed=seed, labels=of_groups).values()):
        part[by_first[members]] = number
    return by_code(part[group])


def rotate_validation(
    splits: Splits, parts: int, *, seed: int = 0, labels: ArrayLike | None = None, groups: ArrayLike | None = None
) -> list[Splits]:
    """Divide training and validation part together into `parts`, and let each of them validate in turn.

    What is tested stays what it is. `labels` and `groups` as in :func:`k_folds`.
    """
    both = np.sort(np.concatenate([splits["train"], splits["val"]]))
    if not 2 <= parts <= len(both):
        raise DataError(f"{len(both)} graphs to learn from cannot be divided among {parts} members: use fewer members")
    strata = None if labels is None else np.asarray(labels)[both]
    if groups is None:
        number = _dealt(len(both), parts, seed, strata)
    else:
        number = _grouped(np.asarray(groups)[both], parts, seed, strata)
    rest = {name: part for name, part in splits.items() if name not in ("train", "val")}
    return [{"train": both[number != part], "val": both[number == part], **rest} for part in range(parts)]


def hold_out(indices: Index, labels: ArrayLike, parts: int, *, seed: int = 0) -> tuple[Index, Index]:
    """Divide `indices` into the rest and one of `parts` equal parts, classes in the same proportions in
    both.
    """
    order = _shuffled(len(indices), seed, np.asarray(labels)[indices])
    rest = len(indices) - len(indices) // parts
    return np.sort(indices[order[:rest]]), np.sort(indices[order[rest:]])


def k_folds(
    count: int, folds: int, *, seed: int = 0, labels: ArrayLike | None = None, groups: ArrayLike | None = None
) -> list[Splits]:
    """Each fold tests another part and validates on the next one; with `labels`, stratified by them; with `groups`,
    no group is in two parts.
    """
    if not 3 <= folds <= count:
        raise DataError(f"{count} rows cannot be divided into {folds} folds: use at least 3, at most one per row")
    number = _dealt(count, folds, seed, labels) if groups is None else _grouped(np.asarray(groups), folds, seed, labels)
    return [
        {
            "train": np.flatnonzero((number != fold) & (number != (fold + 1) % folds)),
            "val": np.flatnonzero(number == (fold + 1) % folds),
            "test": np.flatnonzero(number == fold),
        }
        for fold in range(folds)
    ]


def scaffold_split(
    scaffolds: ArrayLike, fractions: Fractions = (0.8, 0.1, 0.1), labels: ArrayLike | None = None
) -> Splits:
    """Molecules of one scaffold stay together: the large groups train, the small ones validate and test.

    Groups are taken by size, then by first member, both descending, into the first part that has room for
    them, as DeepChem and OGB do it. Nothing is drawn at random, unless a part would lack one of the ``labels``, as
    it does where rows are sorted by them: then groups of one size are taken in an order that is drawn, always the same.
    """
    _, first, group, size = np.unique(np.asarray(scaffolds), return_index=True, return_inverse=True, return_counts=True)
    count = len(group)
    split_sizes(count, fractions)
    splits = by_code(_filled_by_size(size, first, fractions)[group])
    if labels is not None and _lacks_a_label(splits, np.asarray(labels)):
        drawn = np.random.default_rng(0).permutation(len(size))
        splits = by_code(_filled_by_size(size, drawn, fractions)[group])
    for (name, members), fraction in zip(splits.items(), fractions, strict=True):
        if fraction > 0 and not len(members):
            raise DataError(
                f"divided by scaffold, the {name} part stays empty: {size.max()} of {count} molecules share one "
                "scaffold. Use a random split."
            )
    return splits


def time_split(times: ArrayLike, fractions: Fractions = (0.8, 0.1, 0.1), *, groups: ArrayLike | None = None) -> Splits:
    """The earliest train, those after them validate, the latest test; with `groups`, no group is in two parts, and
    counts from its earliest.
    """
    when = np.asarray(times, dtype=np.float64)
    if len(when) and when.min() == when.max():
        raise DataError("all rows are of the same time: they cannot be divided by it")
    group = np.arange(len(when)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    begin = np.full(len(np.unique(group)), np.inf)
    np.minimum.at(begin, group, when)
    part = np.empty(len(begin), dtype=np.int64)
    order = np.argsort(begin, kind="stable")
    for number, members in enumerate(in_order(split_sizes(len(begin), fractions)).values()):
        part[order[members]] = number
    return by_code(part[group])


def _filled_by_size(size: Index, among_equals: Index, fractions: Fractions) -> Index:
    """The part of each group, which are taken by size and then by another number, both descending."""
    count, filled = int(size.sum()), [0, 0, 0]
    part_of_group = np.empty(len(size), dtype=np.int64)
    for number in np.lexsort((among_equals, size))[::-1]:
        after = filled[0] + size[number]
        if after <= fractions[0] * count:
            part = 0
        elif after + filled[1] <= (fractions[0] + fractions[1]) * count:
            part = 1
        else:
            part = 2
        filled[part] += int(size[number])
        part_of_group[number] = part
    return part_of_group


def _lacks_a_label(splits: Splits, labels: NDArray[np.generic]) -> bool:
    known = len(np.unique(labels))
    return any(len(part) and len(np.unique(labels[part])) < known for part in splits.values())


_PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing", "holdout"), "test"),
}


def part_of(value: str) -> str:
    """``train``, ``val`` or ``test``, as a cell says; '' if it says something else."""
    return _PARTS.get(value.strip().lower(), "")


def column_split(values: Sequence[str], rows: Index, labels: ArrayLike | None) -> Splits:
    """Divide as a column says; where it names no validation part, a tenth of the training part becomes one."""
    number = {"": -1, **{name: number for number, name in enumerate(NAMES)}}
    parts = np.fromiter((number[part_of(value)] for value in values), np.int8, len(values))
    if (parts < 0).any():
        position = int(parts.argmin())
        raise DataError(
            f"row {rows[position]} of the split column: {values[position]!r} is none of train, val and test "
            "(a column of dates divides with --split time)"
        )
    splits = {name: np.flatnonzero(parts == number[name]) for name in NAMES}
    for name in ("train", "test"):
        if not len(splits[name]):
            raise DataError(f"no row is marked {name!r}")
    if not len(splits["val"]):
        if len(splits["train"]) < 2:
            raise DataError("one row to train on is not enough to take some for validation")
        stratify = np.zeros(len(parts)) if labels is None else labels
        splits["train"], splits["val"] = hold_out(splits["train"], stratify, min(10, len(splits["train"])))
    return splits


def check_partition(splits: Splits, count: int, what: str) -> None:
    """Every one of `count` graphs must be in exactly one part."""
    everything = np.concatenate(list(splits.values()))
    if len(everything) != count or not np.array_equal(np.sort(everything), np.arange(count)):
        sizes = ", ".join(f"{name} {len(part)}" for name, part in splits.items())
        raise DataError(f"{what}: the parts ({sizes}) do not hold each of the {count} graphs exactly once")


def _shuffled(count: int, seed: int, labels: ArrayLike | None) -> Index:
    """A random order; with `labels`, one in which every stretch has the classes in about their proportions.

    The i-th of the n members of a class (in random order) is placed at (i + ½) / n of the whole. Runs name a seed,
    not their rows, and nci's and IMDB's results are published: with another recipe they would be tested on rows they
    were trained on. (scikit-learn's StratifiedShuffleSplit, a fraction of a graph nearer to the proportions, also
    refuses parts smaller than the number of classes, so most tables of fewer than 30 rows.)
    """
    order = np.random.default_rng(seed).permutation(count)
    if labels is None:
        return order
    _, label, size = np.unique(np.asarray(labels)[order], return_inverse=True, return_counts=True)
    by_label = np.argsort(label, kind="stable")
    rank = np.empty(count)
    rank[by_label] = np.arange(count) - np.repeat(np.cumsum(size) - size, size)
    return order[np.argsort((rank + 0.5) / size[label], kind="stable")]


def _dealt(count: int, folds: int, seed: int, labels: ArrayLike | None) -> Index:
    """The fold of each graph, dealt out in turn, class by class.

    As StratifiedKFold of scikit-learn does it, which refuses classes that are all smaller than the number of folds.
    """
    number = np.empty(count, dtype=np.int64)
    order = np.random.default_rng(seed).permutation(count)
    if labels is not None:
        order = order[np.argsort(np.asarray(labels)[order], kind="stable")]
    number[order] = np.arange(count) % folds
    return number


def _grouped(groups: Index, folds: int, seed: int, labels: ArrayLike | None) -> Index:
    """The fold of each graph, groups kept together, folds about equal in size and classes."""
    from sklearn.model_selection import StratifiedGroupKFold

    if (found := len(np.unique(groups))) < folds:
        raise DataError(
            f"there are {found} scaffolds or different molecules, too few for {folds} parts. Use fewer folds or "
            "members, or divide at random."
        )
    strata = np.zeros(len(groups), dtype=np.int64) if labels is None else np.asarray(labels)
    if np.unique(strata, return_counts=True)[1].min() < folds:
        strata = np.zeros_like(strata)  # a class that cannot be in every fold
    number = np.empty(len(groups), dtype=np.int64)
    division = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for fold, (_, test) in enumerate(division.split(strata, strata, groups)):
        number[test] = fold
    return number
