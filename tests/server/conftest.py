import pytest
from in_process import InProcess
from postgres_server import postgres, postgres_address  # noqa: F401 - fixtures
from server_process import serve, start_server  # noqa: F401 - fixtures
from waiting import wait_until

from submax.bandit.store import Store, open_store
from submax.server.app import App
from submax.server.keys import Keys
from submax.server.service import Service

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
def serving(store):
    """An application over a store or a service, which is ready if that ``is_awaited``."""
    yield from _applications()


@pytest.fixture(scope="module")
def shared_serving():
    """Like ``serving``, for all tests of a module."""
    yield from _applications()


def _applications():
    opened = []

    def serving(store, *, is_awaited=True, **options) -> InProcess:
        service = store if isinstance(store, Service) else Service(store)
        opened.append(InProcess(App(service, **options)))
        if is_awaited:
            wait_until(lambda: service.ready)
        return opened[-1]

    yield serving
    for client in opened:
        client.close()


@pytest.fixture
def http(serving, store) -> InProcess:
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
