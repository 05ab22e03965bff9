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


def test_threads_do_not_spin_while_they_wait() -> None:
    """The policy is set before torch is loaded; somebody's own choice stays."""
    code = "import os, sys; from lspe.cli.main import run; sys.argv = ['lspe', '--version']\n"
    code += "try: run()\nexcept SystemExit: print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    for given, found in ((None, "PASSIVE"), ("ACTIVE", "ACTIVE")):
        environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
        if given:
            environment["OMP_WAIT_POLICY"] = given
        result = run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert result.stdout.splitlines()[-1] == f"{found} False"
