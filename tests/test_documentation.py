"""Every command and every piece of Python in README and docs runs, in the order in which a reader meets it."""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lspe.cli.main import app
from lspe.errors import UserError

ROOT = Path(__file__).parents[1]
PAGES = ["start", "own-data", "own-graphs", "training", "predict", "encodings", "own-layer", "reproduce", "benchmarks"]
# set-up and whole jobs, which other tests and CI run
ELSEWHERE = ("make ", "pip ", "pre-commit ", "python -m benchmarks")
# a reader waits for a whole training; here one epoch of one layer has to do
SHORT = {
    "lspe train": ["--epochs", "1", "--threads", "1"],
    "lspe sweep": ["--epochs", "1", "--threads", "1"],
    "lspe tune": ["--trials", "1", "--threads", "1", "--set", "training.protocol.max_epochs=1"],
    "lspe reproduce": ["--epochs", "1", "--seeds", "1", "--threads", "1"],
}
MOLECULES = [
    "CCO",
    "CCC",
    "CCN",
    "CCCl",
    "CCBr",
    "CCCC",
    "CCCO",
    "CCCN",
    "c1ccccc1",
    "c1ccccc1O",
    "CC(=O)O",
    "CC(C)C",
    "OCCO",
    "CCOC",
    "NCCN",
    "c1ccncc1",
]


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and content of the fenced blocks of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[str]:
    lines = [line.split("  #")[0].strip() for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def run_command(line: str) -> None:
    if "|" in line:
        line = line.replace("lspe ", f"{sys.executable} -m lspe ", 1)
        subprocess.run(line, shell=True, check=True, capture_output=True)
        return
    words = shlex.split(line)
    assert words[0] == "lspe", f"not a command of ours: {line}"
    if "--resume" not in words:
        words += SHORT.get(" ".join(words[:2]), [])
    if "zinc/gatedgcn-lspe" in words:
        words += ["--set", "model.layers=1"]
    result = CliRunner().invoke(app, words[1:])
    if isinstance(result.exception, UserError):
        pytest.fail(f"{line}: {result.exception}")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, f"{line}: {result.output}"


def write_tables(folder: Path) -> None:
    rows = [f"{smiles},{len(smiles) / 3:.3f}" for smiles in MOLECULES * 2]
    (folder / "solubility.csv").write_text("\n".join(["smiles,logS", *rows]) + "\n")
    for name in ("new.csv", "molecules.csv"):
        (folder / name).write_text("\n".join(["smiles,name", "CCO,ethanol", "C1CC,broken", "CCCCC,pentane"]) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("start", ["README.md", "docs"])
def test_everything_shown_runs(start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    pages = [ROOT / start] if start == "README.md" else [ROOT / "docs" / f"{page}.md" for page in PAGES]
    for page in pages:
        namespace: dict[str, object] = {"__name__": page.stem}
        for language, block in blocks(page.read_text(encoding="utf-8")):
            if language == "python":
                if file := re.match(r"# (\w+\.py)\n", block):  # a file of the reader's own, which commands name
                    (tmp_path / file[1]).write_text(block)
                exec(compile(block, str(page), "exec"), namespace)
            elif language == "bash":
                for line in commands(block):
                    if not line.startswith(ELSEWHERE) and not _needs_what_is_absent(line):
                        run_command(line)


def _needs_what_is_absent(line: str) -> bool:
    """Such data are read from $LSPE_DATA; unset, ZINC and MolTox21 would be downloaded. Optuna is an extra."""
    if "tune" in line and find_spec("optuna") is None:
        return True
    if os.environ.get("LSPE_DATA"):
        return False
    return any(name in line for name in ("zinc", "moltox21", "table1", "ca-astroph"))
