"""Everything derived goes into a cache of the session."""

import pytest


@pytest.fixture(autouse=True)
def surroundings(session_cache: None) -> None:
    """For every test of experiments."""
