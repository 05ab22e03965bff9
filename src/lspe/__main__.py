"""``python -m lspe`` is the same as ``lspe``."""

from lspe.cli.main import run

run()
