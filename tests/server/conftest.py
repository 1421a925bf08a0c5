import pytest
from in_browser import browser  # noqa: F401 - pytest finds fixtures by their names here
from in_process import InProcess, serving, shared_serving  # noqa: F401 - pytest finds fixtures by their names here
from postgres_server import postgres, postgres_address  # noqa: F401 - pytest finds fixtures by their names here
from server_process import serve, start_server  # noqa: F401 - pytest finds fixtures by their names here

from submax.bandit.store import Store, open_store
from submax.server.keys import Keys

WATCHED = ("bandit", "decision", "reward", "early_reward", "key", "publication", "audit")
"""The tables of what requests may change."""


def contents(store: Store) -> dict[str, list]:
    """All rows of a store that requests may change."""
    return {table: store.select(f"select * from {table}") for table in WATCHED}


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "served.db") as store:
        yield store


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory):
    """A store for all tests of a file, which must leave it as it was."""
    with open_store(tmp_path_factory.mktemp("shared") / "served.db") as store:
        yield store


@pytest.fixture
def http(serving, store) -> InProcess:  # noqa: F811 - pytest passes what the fixture gives
    return serving(store)


@pytest.fixture
def key(store):
    """Make a key, and the header that shows it."""

    def key(*scopes, **limits):
        _, text = Keys(store).add(scopes, **limits)
        return {"authorization": f"Bearer {text}"}

    return key


def done(response, status=200):
    assert response.status_code == status, response.text
    return response.json()


def created(http, declaration):
    return done(http.post("/bandits", json=declaration), 201)


def decided(http, bandit="arms", **request):
    return done(http.post(f"/bandits/{bandit}/decide", json=request))
