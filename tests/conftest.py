"""What tests of all parts share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the benchmarks' files."""
    folder = os.environ.get("LSPE_DATA")
    if not folder:
        pytest.skip("LSPE_DATA does not name a folder with the benchmarks' files")
    return Path(folder)
