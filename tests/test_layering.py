"""Imports go only downwards: a room of the package knows nothing of the rooms above it."""

import ast
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lspe

SOURCE = Path(lspe.__file__).parent

# each room and the rooms it may import, from the ground upwards; a room is a module or a folder of modules
HOUSE: dict[str, set[str]] = {
    "errors": set(),
    "_version": set(),
    "config": {"errors"},
    "devices": {"errors"},
    "files": {"errors"},
    "features": {"config"},
    "locations": set(),
    "testing": set(),
    "ops": {"errors", "locations"},
    "own_parts": {"errors"},
    "encodings": {"devices", "errors", "ops", "own_parts"},
    "isomorphism": {"encodings"},
    "nn": {"encodings", "errors", "features", "ops", "own_parts"},
    "data": {"encodings", "errors", "features", "files", "locations"},
    "forest": {"data"},
    "experiment": {"config", "data", "encodings", "errors", "features", "locations", "nn", "ops", "own_parts"},
    "training": {
        "_version",
        "data",
        "devices",
        "errors",
        "experiment",
        "features",
        "files",
        "locations",
        "nn",
        "ops",
        "own_parts",
    },
    "predict": {"data", "devices", "errors", "experiment", "features", "files", "forest", "nn", "training"},
    "cluster": {"data", "encodings", "errors", "files", "predict"},
    "blending": {"data", "experiment", "files", "forest", "predict", "training"},
    "announcement": {"data", "errors", "experiment", "nn", "training"},
    "estimators": {"data", "errors", "experiment", "features", "files", "predict", "training"},
    "plots": {"config", "data", "encodings", "errors", "experiment", "files", "isomorphism", "predict", "training"},
    "html_report": {"data", "files", "plots", "predict", "training"},
    "for_people": {"blending", "data", "experiment", "html_report", "plots", "predict", "training"},
    "sources": {"config", "data", "errors", "experiment", "own_parts"},
    "workflow": {
        *("announcement", "data", "devices", "errors", "experiment", "files", "for_people", "locations", "nn"),
        *("sources", "training"),
    },
    "sweeping": {
        *("config", "data", "errors", "experiment", "files", "for_people", "html_report", "locations", "own_parts"),
        *("sources", "training", "workflow"),
    },
    "tuning": {"errors", "experiment", "files", "plots", "training"},
    "reproduce": {"config", "data", "errors", "experiment", "files", "locations", "plots", "predict", "training"},
    "explore": {"_version", "data", "encodings", "errors", "isomorphism", "nn", "plots", "predict"},
}
HOUSE["__init__"] = {*HOUSE} - {"__init__"}
HOUSE["cli"] = {*HOUSE}
HOUSE["__main__"] = {"cli"}

# the rooms of lspe.data among themselves
DATA: dict[str, set[str]] = {
    "errors": set(),
    "progress": set(),
    "report": {"errors"},
    "words": set(),
    "packed": {"errors"},
    "splits": {"errors", "packed"},
    "loader": {"packed"},
    "neighbours": {"errors", "loader", "packed"},
    "graphdata": {"errors", "packed", "report", "splits", "words"},
    "molecules": {"errors", "packed", "progress", "words"},
    "table": {"errors", "graphdata", "molecules", "packed", "report", "splits", "words"},
    "graphs": {"errors", "graphdata", "packed", "splits", "words"},
    "benchmarks": {
        "errors",
        "graphdata",
        "graphs",
        "molecules",
        "packed",
        "progress",
        "splits",
        "table",
        "words",
    },
    "encoding_files": {"errors", "graphs", "molecules", "packed", "progress", "table"},
    "statistics": {"graphdata", "packed"},
}
DATA["__init__"] = {*DATA} - {"__init__"}

FLOORS = [("lspe", SOURCE, HOUSE), ("lspe.data", SOURCE / "data", DATA)]


def imported_rooms(path: Path, package: str) -> set[str]:
    """The rooms of ``package`` that a file imports, at the top or inside functions."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path} has a relative import"
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    names = (module.removeprefix(f"{package}.").split(".")[0] for module in modules if module.startswith(f"{package}."))
    return {name if name in rooms_in(package) else "__init__" for name in names}


def rooms_in(package: str) -> set[str]:
    folder = SOURCE.parent / package.replace(".", "/")
    return {one.stem for one in folder.iterdir() if one.suffix == ".py" or (one / "__init__.py").exists()}


def files_of(folder: Path, room: str) -> list[Path]:
    single = folder / f"{room}.py"
    return [single] if single.exists() else sorted((folder / room).rglob("*.py"))


@pytest.mark.parametrize(
    "package, folder, house, room",
    [pytest.param(*floor, room, id=f"{floor[0]}.{room}") for floor in FLOORS for room in floor[2]],
)
def test_imports_go_downwards(package: str, folder: Path, house: Mapping[str, set[str]], room: str) -> None:
    for path in files_of(folder, room):
        above = imported_rooms(path, package) - house[room] - {room}
        assert not above, f"{path.relative_to(SOURCE)} imports {sorted(above)}"


@pytest.mark.parametrize("package, folder, house", FLOORS, ids=["lspe", "data"])
def test_the_house_has_no_cycle_and_every_room_is_in_it(
    package: str, folder: Path, house: Mapping[str, set[str]]
) -> None:
    list(TopologicalSorter(house).static_order())  # raises CycleError
    assert rooms_in(package) == set(house)
