"""Malformed calls end in the plain twin's error or its result, never in a crash or another number."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ops.malformed import TARGETS


@pytest.mark.parametrize("calls", [200, pytest.param(2000, marks=pytest.mark.rare)])
def test_malformed_calls(calls: int) -> None:
    """So many of each of them, in a process of its own."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-W", "ignore", "-m", "tests.ops.malformed", str(calls)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=3600)
    assert ended.returncode == 0, ended.stdout[-500:] + ended.stderr[-3000:]
    assert ended.stdout.splitlines() == [*TARGETS, "every call ended alike"]
