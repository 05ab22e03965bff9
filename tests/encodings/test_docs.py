"""docs/encodings.md: every kind with its equation, and what it says that each tells apart, computed again."""

import re
from pathlib import Path

import pytest

from lspe.encodings import KINDS, find_kind
from lspe.encodings.dense import MOST_NODES
from lspe.isomorphism import compare_encodings
from tests.encodings.telling import PAIRS, classes, connected_graphs, weisfeiler_lehman_classes

PAGE = (Path(__file__).parents[2] / "docs" / "encodings.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, and its head first."""
    below = PAGE.partition(heading)[2]
    lines = re.findall(r"^\|(.*)\|$", below.partition("\n\n## ")[0], flags=re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines if "---" not in line]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("kind", KINDS)
def test_the_equation_of_every_kind_is_shown(kind: str) -> None:
    equation = find_kind(kind).equation
    assert equation in PAGE, equation


TABLES = [
    "# Encodings explained",
    "## What each can tell apart",
    "## What each costs",
    "## What each is tested against",
]


@pytest.mark.parametrize("heading", TABLES)
def test_every_kind_is_in_every_table(heading: str) -> None:
    _, *rows = table(heading)
    assert sorted(name for row in rows for name in names(row[0])) == sorted(KINDS)


def test_levels_and_limits_are_those_of_the_code() -> None:
    _, *rows = table("# Encodings explained")
    assert {name: f"{find_kind(name).level}s" for name in KINDS} == {names(row[0])[0]: row[1] for row in rows}
    assert f"up to {MOST_NODES:,} nodes" in PAGE


def test_what_each_tells_apart_is_computed() -> None:
    head, *rows = table("## What each can tell apart")
    assert head[2:] == [*PAIRS]
    graphs = connected_graphs()
    by_pair = [compare_encodings(*pair) for pair in PAIRS.values()]
    for row in rows:
        [kind] = names(row[0])
        first = ["–" if one[kind] is None else str(one[kind]) for one in by_pair]
        assert row[1:] == [str(classes(kind, graphs)), *first], kind
    assert f"finds {weisfeiler_lehman_classes(graphs)} classes among the {len(graphs)}" in PAGE.replace("\n", " ")
