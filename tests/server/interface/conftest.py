import pytest

from submax.live.store.memory_store import MemoryStore


@pytest.fixture(scope="module")
def shared_store():
    """A store for all tests of a file, which must leave it as it was."""
    return MemoryStore()


def done(response, status=200):
    assert response.status_code == status, response.text
    return response.json()


def created(http, declaration):
    return done(http.post("/bandits", json=declaration), 201)


def decided(http, bandit="arms", **request):
    return done(http.post(f"/bandits/{bandit}/decide", json=request))
