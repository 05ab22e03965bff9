from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rdkit import Chem

from lspe.data import DataError
from lspe.data.errors import MoleculeError
from lspe.data.molecules.smiles import parse, scaffold
from lspe.data.splits import (
    check_partition,
    column_split,
    hold_out,
    k_folds,
    random_split,
    rotate_validation,
    scaffold_split,
    time_split,
)


@settings(max_examples=80, deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=10, max_size=200),
    seed=st.integers(0, 99),
    stratified=st.booleans(),
)
def test_random_splits_hold_every_graph_once_and_keep_proportions(
    labels: list[int], seed: int, stratified: bool
) -> None:
    y = np.array(labels)
    splits = random_split(len(y), (0.6, 0.2, 0.2), seed=seed, labels=y if stratified else None)
    check_partition(splits, len(y), "test")
    again = random_split(len(y), (0.6, 0.2, 0.2), seed=seed, labels=y if stratified else None)
    assert all(np.array_equal(splits[name], again[name]) for name in splits)
    assert len(splits["val"]) == len(splits["test"]) == int(len(y) * 0.2)
    if stratified:
        for name, fraction in (("train", 0.6), ("val", 0.2), ("test", 0.2)):
            share = np.bincount(y[splits[name]], minlength=4)
            # each class is cut to a whole number; what three of them have too much the fourth lacks
            assert np.abs(share - np.bincount(y, minlength=4) * fraction).max() <= 3


def test_seeds_give_different_splits() -> None:
    assert not np.array_equal(random_split(50, seed=0)["test"], random_split(50, seed=1)["test"])


@settings(max_examples=60, deadline=None)
@given(labels=st.lists(st.integers(0, 3), min_size=8, max_size=120), folds=st.integers(3, 8), seed=st.integers(0, 9))
def test_folds_test_every_graph_once_and_are_stratified(labels: list[int], folds: int, seed: int) -> None:
    y = np.array(labels)
    parts = k_folds(len(y), folds, seed=seed, labels=y)
    for number, part in enumerate(parts):
        check_partition(part, len(y), "test")
        np.testing.assert_array_equal(part["val"], parts[(number + 1) % folds]["test"])
        expected = np.bincount(y, minlength=4) / folds
        assert np.abs(np.bincount(y[part["test"]], minlength=4) - expected).max() < 1
    np.testing.assert_array_equal(np.sort(np.concatenate([part["test"] for part in parts])), np.arange(len(y)))


@settings(max_examples=80, deadline=None)
@given(
    groups=st.lists(st.integers(0, 40), min_size=30, max_size=120),
    folds=st.integers(3, 5),
    seed=st.integers(0, 9),
    stratified=st.booleans(),
)
def test_folds_keep_groups_together(groups: list[int], folds: int, seed: int, stratified: bool) -> None:
    group = np.array(groups)
    labels = np.arange(len(group)) % 2 if stratified else None
    assume(len(set(groups)) >= folds)
    parts = k_folds(len(group), folds, seed=seed, labels=labels, groups=group)
    for number, part in enumerate(parts):
        check_partition(part, len(group), "test")
        np.testing.assert_array_equal(part["val"], parts[(number + 1) % folds]["test"])
        members = [set(group[one]) for one in part.values()]
        assert all(members)
        assert not (members[0] & members[1] | members[0] & members[2] | members[1] & members[2])
    again = k_folds(len(group), folds, seed=seed, labels=labels, groups=group)
    assert all(np.array_equal(one["test"], two["test"]) for one, two in zip(parts, again, strict=True))


def test_folds_of_groups_are_about_equal() -> None:
    group = np.repeat(np.arange(100), 5)
    labels = np.arange(500) % 5 == 0
    for part in k_folds(500, 5, labels=labels, groups=group):
        assert 80 <= len(part["test"]) <= 120
        assert 16 <= labels[part["test"]].sum() <= 24


def test_too_few_groups_for_the_folds_are_refused() -> None:
    with pytest.raises(DataError, match="there are 3 scaffolds or different molecules, too few for 4 parts"):
        k_folds(30, 4, groups=np.arange(30) % 3)


def test_hold_out_takes_a_stratified_part() -> None:
    y = np.array([0] * 90 + [1] * 180)
    rest, held = hold_out(np.arange(270), y, 9)
    assert np.bincount(y[held]).tolist() == [10, 20]
    check_partition({"rest": rest, "held": held}, 270, "test")


def test_scaffold_split_keeps_scaffolds_together_and_is_always_the_same() -> None:
    scaffolds = np.array(list("aaaaabbbccdefghijklm"))
    splits = scaffold_split(scaffolds, (0.6, 0.2, 0.2))
    check_partition(splits, 20, "test")
    groups = [set(scaffolds[part]) for part in splits.values()]
    assert not (groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2])
    assert [len(part) for part in splits.values()] == [12, 4, 4]
    assert set("abc") <= groups[0]
    shuffled = np.random.default_rng(0).permutation(20)
    assert [len(part) for part in scaffold_split(scaffolds[shuffled], (0.6, 0.2, 0.2)).values()] == [12, 4, 4]


def test_scaffold_split_of_rows_sorted_by_their_label_has_both_in_every_part() -> None:
    scaffolds, labels = np.arange(100) // 2, np.repeat([1, 0], 50)
    by_row = scaffold_split(scaffolds)
    assert [len(np.unique(labels[part])) for part in by_row.values()] == [2, 1, 1]
    drawn = scaffold_split(scaffolds, labels=labels)
    check_partition(drawn, 100, "test")
    assert [len(np.unique(labels[part])) for part in drawn.values()] == [2, 2, 2]
    assert [len(part) for part in drawn.values()] == [80, 10, 10]
    assert all(len(set(scaffolds[part])) * 2 == len(part) for part in drawn.values())
    again = scaffold_split(scaffolds, labels=labels)
    assert all((drawn[name] == again[name]).all() for name in drawn)
    mixed = np.tile([1, 0], 50)
    assert all((scaffold_split(scaffolds, labels=mixed)[name] == by_row[name]).all() for name in by_row)


def test_scaffold_split_of_tox21_is_ogbs(shared_data: Path) -> None:
    import pandas as pd

    table = pd.read_csv(shared_data / "tox21.csv.gz")
    scaffolds = []
    for smiles in table["smiles"]:
        try:
            mol = parse(smiles)
        except MoleculeError:  # eight with aluminium that RDKit could read when the benchmark was made
            mol = Chem.MolFromSmiles(smiles, sanitize=False)
            Chem.FastFindRings(mol)
        scaffolds.append(scaffold(mol))
    splits = scaffold_split(scaffolds)
    given = table["split"].map({"train": "train", "valid": "val", "val": "val", "test": "test"}).to_numpy()
    ours = np.empty(len(table), dtype=object)
    for name, part in splits.items():
        ours[part] = name
    assert {name: len(part) for name, part in splits.items()} == {"train": 6264, "val": 783, "test": 784}
    np.testing.assert_array_equal(ours, given)


def test_a_scaffold_all_molecules_share_cannot_be_split() -> None:
    with pytest.raises(DataError, match="10 of 10 molecules share one scaffold"):
        scaffold_split(["c1ccccc1"] * 10)


def test_a_column_divides_by_its_words() -> None:
    splits = column_split(["Train", " training", "VALID", "test", "dev"], [2, 3, 4, 5, 6], None)
    assert {name: part.tolist() for name, part in splits.items()} == {"train": [0, 1], "val": [2, 4], "test": [3]}


def test_a_column_without_validation_part_gives_some_of_the_training_part() -> None:
    splits = column_split(["train"] * 20 + ["test"] * 5, list(range(25)), [0, 1] * 12 + [0])
    assert [len(part) for part in splits.values()] == [18, 2, 5]
    check_partition(splits, 25, "test")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["train", "fold 1"], "row 3 of the split column: 'fold 1' is none of train, val and test"),
        (["train", ""], "row 3 of the split column: ''"),
        (["train", "val"], "no row is marked 'test'"),
        (["test", "val"], "no row is marked 'train'"),
        (["train", "test"], "one row to train on is not enough"),
    ],
)
def test_a_split_column_that_does_not_divide_is_refused(values: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        column_split(values, [2, 3], None)


def test_impossible_divisions_are_refused() -> None:
    with pytest.raises(DataError, match=r"must add up to 1, not 0.5 \+ 0.1 \+ 0.1"):
        random_split(10, (0.5, 0.1, 0.1))
    with pytest.raises(DataError, match="2 rows cannot be divided into 3 parts"):
        random_split(2)
    with pytest.raises(DataError, match="5 rows cannot be divided into 6 folds"):
        k_folds(5, 6)
    with pytest.raises(DataError, match="at least 3"):
        k_folds(5, 2)


def test_groups_are_never_torn_apart() -> None:
    groups = np.random.default_rng(0).integers(0, 40, size=120)
    parts = random_split(120, groups=groups)
    found = [set(groups[part]) for part in parts.values()]
    assert sum(map(len, found)) == len(set(groups))
    assert sorted(np.concatenate(list(parts.values()))) == list(range(120))
    assert min(map(len, parts.values())) > 0


def test_single_molecules_are_divided_as_if_there_were_no_groups() -> None:
    """Runs name a seed, not their rows."""
    labels = np.arange(50) % 3
    with_groups = random_split(50, seed=4, labels=labels, groups=np.arange(50)[::-1])
    for name, part in random_split(50, seed=4, labels=labels).items():
        assert (with_groups[name] == part).all()


@pytest.mark.parametrize("grouped", [False, True])
def test_every_graph_that_is_not_tested_validates_one_member(grouped: bool) -> None:
    groups = np.repeat(np.arange(50), 2) if grouped else None
    splits = random_split(100, groups=groups)
    divisions = rotate_validation(splits, 5, groups=groups)
    validated = np.concatenate([one["val"] for one in divisions])
    assert sorted(validated) == sorted(np.concatenate([splits["train"], splits["val"]]))
    for one in divisions:
        assert (one["test"] == splits["test"]).all()
        assert not set(one["train"]) & set(one["val"])
        if groups is not None:
            assert not set(groups[one["train"]]) & set(groups[one["val"]])


def test_too_few_graphs_for_the_members_are_refused() -> None:
    with pytest.raises(DataError, match="3 graphs to learn from cannot be divided among 5 members"):
        rotate_validation({"train": np.arange(2), "val": np.array([2]), "test": np.array([3])}, 5)


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), min_size=8, max_size=120), grouped=st.booleans()
)
def test_by_time_nothing_learned_from_begins_after_what_is_tested(rows: list[tuple[int, int]], grouped: bool) -> None:
    times, groups = (np.array(column) for column in zip(*rows, strict=True))
    assume(len(np.unique(times)) > 1)
    if not grouped:
        groups = np.arange(len(times))
    assume(len(np.unique(groups)) >= 3)
    splits = time_split(times, groups=groups if grouped else None)
    check_partition(splits, len(times), "test")
    begin = {group: times[groups == group].min() for group in np.unique(groups)}
    train, val, test = ({int(group) for group in groups[splits[name]]} for name in ("train", "val", "test"))
    assert len(train) + len(val) + len(test) == len(begin)
    assert max(begin[one] for one in train) <= min(begin[one] for one in val | test)
    assert max(begin[one] for one in train | val) <= min(begin[one] for one in test)
    assert len(test) == max(len(begin) // 10, 1)


def test_one_time_divides_nothing() -> None:
    with pytest.raises(DataError, match="all rows are of the same time"):
        time_split([2020.0] * 9)
