"""A new user's computer: the wheel of this repository in a fresh environment, an empty folder, no cache."""

import os
import shlex
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
OFFLINE = ("No matching distribution found", "Failed to establish a new connection", "Name or service not known")


@dataclass(frozen=True)
class Computer:
    """Where the commands of lspe are run as they are typed."""

    bin: Path
    folder: Path

    def run(self, command: str, *, stdin: str = "", fails: bool = False) -> tuple[str, str]:
        """What a command prints and says; it must succeed, or fail in words."""
        program, *arguments = shlex.split(command)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"LSPE_CACHE": str(self.folder.parent / "cache"), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self.folder, env=environment, input=stdin, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert (done.returncode != 0) == fails, f"$ {command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout, done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(REPOSITORY)]
    if find_spec("hatchling") is not None:
        command.append("--no-isolation")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    said = done.stdout + done.stderr
    if done.returncode and any(sign in said for sign in OFFLINE):
        pytest.skip("the build backend (hatchling) is not installed and cannot be fetched")
    assert done.returncode == 0, said
    [path] = folder.glob("lspe-*.whl")
    return path


@pytest.fixture(scope="session")
def computer(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Computer:
    """A fresh environment with the wheel; the heavy dependencies are those of the environment of the tests."""
    home = tmp_path_factory.mktemp("home")
    venv.create(home / "venv", with_pip=False)
    python = home / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    [site_packages] = (home / "venv").glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=120)
    (home / "work").mkdir()
    return Computer(python.parent, home / "work")
