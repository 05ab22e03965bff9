"""Training takes one thread here, and everything derived goes into a cache of the session."""

import pytest


@pytest.fixture(autouse=True)
def surroundings(session_cache: None, one_thread: None, ordinary_ctrl_c: None) -> None:
    """For every test of training."""
