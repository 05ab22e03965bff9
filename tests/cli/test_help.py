"""The help that people read first."""

import os
import sys
from subprocess import run

import pytest
import typer
from typer.testing import CliRunner

from lspe.cli.main import app

SCREEN = 56
GROUP = typer.main.get_command(app)
COMMANDS = [*GROUP.commands, *(f"data {name}" for name in GROUP.commands["data"].commands)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_screen_and_gives_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"}, prog_name="lspe")
    assert result.exit_code == 0
    assert len(result.output.splitlines()) <= SCREEN
    assert "…" not in result.output.replace("(0, 1, …)", ""), "an option's name is cut off"
    if command != "data":
        assert f"lspe {command}" in result.output.partition("Example")[2]


def test_help_imports_nothing_heavy() -> None:
    heavy = ["torch", "pandas", "rdkit", "lightning", "matplotlib", "fastapi", "sklearn"]
    code = f"import sys; import lspe.cli.main; print([name for name in {heavy} if name in sys.modules])"
    assert run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_predicting_imports_nothing_that_only_training_needs() -> None:
    heavy = ["lightning", "torchmetrics", "matplotlib", "sklearn"]
    code = f"import sys; import lspe.predict.tables; print([name for name in {heavy} if name in sys.modules])"
    assert run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_threads_do_not_spin_for_long_while_they_wait() -> None:
    """How they wait is set before torch is loaded; somebody's own choice stays."""
    names = ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"]
    code = "import os, sys; from lspe.cli.main import run; sys.argv = ['lspe', '--version']\n"
    code += f"try: run()\nexcept SystemExit: print(*[os.environ.get(name) for name in {names}], 'torch' in sys.modules)"
    cases: list[tuple[dict[str, str], str]] = [
        ({}, "PASSIVE 10000"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None"),
        ({"GOMP_SPINCOUNT": "5"}, "PASSIVE 5"),
    ]
    for given, found in cases:
        environment = {name: value for name, value in os.environ.items() if name not in names} | given
        result = run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert result.stdout.splitlines()[-1] == f"{found} False"
