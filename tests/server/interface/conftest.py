import pytest

from submax.live.store.memory_store import MemoryStore


@pytest.fixture(scope="module")
def shared_store():
    """A store for all tests of a file, which must leave it as it was."""
    return MemoryStore()
