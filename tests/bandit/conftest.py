import pytest
from postgres_server import postgres, postgres_address  # noqa: F401

from submax.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
