import pytest
from postgres_server import postgres, postgres_address  # noqa: F401 - fixtures
from stored import OPENED, new_store

from submax.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock):
    """A store for tests that need no path."""
    return new_store(clock)


@pytest.fixture(autouse=True)
def closed_stores():
    yield
    while OPENED:
        OPENED.pop().close()
