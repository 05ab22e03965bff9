"""docs/equations.md: every link leads to a function, and the equation is written above it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| (.+?) \| `(src/[^`]+)` \| `([^`]+)` \|$", PAGE, flags=re.MULTILINE)

# what the page has to lead to, whatever it is called there
NEEDED = [
    "mpgnn_lspe_h_update",
    "gatedcn_lspe_1",
    "pna_lspe_1",
    "san_lspe_1",
    "san_lspe_3a_graphit",
    "final_loss",
    "init_pe_2",
]


def definition(tree: ast.Module, path: str) -> list[ast.ClassDef | ast.FunctionDef]:
    """A class or function by its dotted name, with the classes around it."""
    found: list[ast.ClassDef | ast.FunctionDef] = []
    body = tree.body
    for name in path.split("."):
        one = next(x for x in body if isinstance(x, ast.ClassDef | ast.FunctionDef) and x.name == name)
        found.append(one)
        body = one.body
    return found


def test_every_equation_is_there() -> None:
    labels = " ".join(labels for _, labels, _, _ in ROWS)
    assert all(f"`{label}`" in labels for label in NEEDED)
    assert len(ROWS) == PAGE.count("`src/lspe/nn") + PAGE.count("`src/lspe/encodings")


@pytest.mark.parametrize(("what", "file", "path"), [(what, file, path) for what, _, file, path in ROWS])
def test_the_link_leads_to_the_equation(what: str, file: str, path: str) -> None:
    chain = definition(ast.parse((ROOT / file).read_text(encoding="utf-8")), path)
    docstrings = " ".join(ast.get_docstring(one) or "" for one in chain)
    assert "math::" in docstrings or path == "readout", f"{what}: {file} has no equation above {path}"
    assert len(chain[-1].body) > 1, "arithmetic, not a stub"
