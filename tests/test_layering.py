"""Imports go only downwards: a part of the package knows nothing of the parts above it."""

import ast
from pathlib import Path

import pytest

import lspe

SOURCE = Path(lspe.__file__).parent

# each part and what it may import; the foundations are open to all
FOUNDATIONS = {"_lazy", "_version", "errors", "config", "devices", "files"}
ALLOWED = {
    "encodings": {"ops"},
    "ops": set(),
    "isomorphism": {"encodings"},
    "testing": set(),
    "nn": {"encodings", "ops"},
    "data": {"encodings", "ops"},
    "training": {"data", "encodings", "nn", "ops", "presets"},
    "presets": {"nn", "training"},  # a preset names its protocol, which is a plain value
    "predict": {"data", "encodings", "nn", "presets", "training"},
    "estimators": {"data", "encodings", "nn", "predict", "presets", "training"},
    "plots": {"data", "encodings", "isomorphism", "nn", "predict", "presets", "training"},
    "reproduce": {"data", "plots", "predict", "presets", "training"},
    "explore": {"data", "encodings", "isomorphism", "nn", "plots", "predict", "presets", "training"},
}


def imported_parts(path: Path) -> set[str]:
    """The parts of lspe that a file imports, at the top or inside functions."""
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module] if node.module != "lspe" else [f"lspe.{alias.name}" for alias in node.names]
        parts |= {name.split(".")[1] for name in names if name.startswith("lspe.")}
    return parts


def files_of(part: str) -> list[Path]:
    single = SOURCE / f"{part}.py"
    return [single] if single.exists() else sorted((SOURCE / part).rglob("*.py"))


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_go_downwards(part: str) -> None:
    allowed = ALLOWED[part] | FOUNDATIONS | {part, "__version__"}
    for path in files_of(part):
        above = imported_parts(path) - allowed
        assert not above, f"{path.relative_to(SOURCE)} imports {sorted(above)}"


def test_every_part_is_listed() -> None:
    parts = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - {"__init__", "__main__", "cli"} <= set(ALLOWED) | FOUNDATIONS
