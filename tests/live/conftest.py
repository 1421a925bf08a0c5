import pytest
from postgres_server import postgres, postgres_address  # noqa: F401

from submax.live.store.memory_store import MemoryStore
from submax.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock) -> MemoryStore:
    return MemoryStore(clock)
