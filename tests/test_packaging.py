"""The versions that are asked for are those that are tried."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

TOP = Path(__file__).parents[1]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
NEWER_THAN_ITS_BOUND = {"torch"}  # see constraints-oldest.txt


def asked_for(*extras: str) -> list[Requirement]:
    texts = [*PROJECT["dependencies"], *(one for extra in extras for one in PROJECT["optional-dependencies"][extra])]
    return [requirement for text in texts if (requirement := Requirement(text)).name != "lspe"]


def pinned(file: str) -> dict[str, Version]:
    lines = [line for line in (TOP / file).read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in (line.split("==") for line in lines)}


def bound(requirement: Requirement) -> Version:
    (specifier,) = requirement.specifier
    assert specifier.operator == ">=", f"{requirement} should have a lower bound and nothing else"
    return Version(specifier.version)


@pytest.mark.parametrize("requirement", asked_for("tensorboard", "explore", "dev"), ids=lambda one: one.name)
def test_every_lower_bound_is_what_the_oldest_environment_has(requirement: Requirement) -> None:
    tried = pinned("constraints-oldest.txt")[canonicalize_name(requirement.name)]
    if requirement.name in NEWER_THAN_ITS_BOUND:
        assert tried == pinned("constraints.txt")[requirement.name] >= bound(requirement)
    else:
        assert tried == bound(requirement)


@pytest.mark.parametrize(
    "requirement", asked_for("tensorboard", "explore", "ray", "dev", "docs"), ids=lambda one: one.name
)
def test_the_pinned_version_is_allowed(requirement: Requirement) -> None:
    assert pinned("constraints.txt")[canonicalize_name(requirement.name)] >= bound(requirement)
