import re
import time
from collections.abc import Callable

import httpx
import pytest
from forked_command import start_command
from in_process import InProcess
from postgres_server import postgres, postgres_address  # noqa: F401
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
    """An application over a store, or over a service that need not be ready."""
    yield from _applications()


@pytest.fixture(scope="module")
def shared_serving():
    """Like ``serving``, for all tests of a module."""
    yield from _applications()


def _applications():
    opened = []

    def serving(store, **options) -> InProcess:
        service = store if isinstance(store, Service) else Service(store)
        client = InProcess(App(service, **options))
        opened.append(client)
        if service is not store:
            wait_until(lambda: service.ready)
        return client

    yield serving
    for client in opened:
        client.close()


@pytest.fixture
def opened():
    """Open any ASGI application in this process."""
    clients = []

    def opened(app) -> InProcess:
        clients.append(InProcess(app))
        return clients[-1]

    yield opened
    for client in clients:
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


@pytest.fixture
def events(store) -> Callable[[], dict[str, list]]:
    """All that the store holds."""
    return lambda: contents(store)


def done(response, status=200):
    assert response.status_code == status, response.text
    return response.json()


def created(http, declaration):
    return done(http.post("/bandits", json=declaration), 201)


def decided(http, bandit="arms", **request):
    return done(http.post(f"/bandits/{bandit}/decide", json=request))


@pytest.fixture
def counted(http) -> Callable[[int], float]:
    """How many requests were answered with a status, as the metrics say."""

    def counted(status: int) -> float:
        # To parse all metrics would take longer than most requests.
        line = rf'submax_requests_total{{.*status="{status}".*}} (.+)'
        return sum(map(float, re.findall(line, http.get("/metrics").text)))

    return counted


class Server:
    """The command ``serve`` in a process of its own, see ``start_command``."""

    def __init__(self, file, port: int = 0, *options: str, **how):
        self.file = file
        self.process = start_command("serve", file, "--port", port, *options, **how)
        self.first_line = self.process.stderr.readline()
        self.address = self.first_line.rpartition(" ")[2].strip()
        self.said = ""
        self._http: httpx.Client | None = None

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def wait_ready(self) -> None:
        wait_until(self._is_ready, READY_SECONDS)

    def _is_ready(self) -> bool:
        if self._status("/readyz") == 200:
            return True
        # Each question is logged: in a pipe that nobody reads is room for some hundred lines.
        time.sleep(0.1)
        return False

    def _status(self, path: str) -> int:
        try:
            return self.get(path).status_code
        except httpx.TransportError:
            return 0

    def get(self, path: str, **options) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options) -> httpx.Response:
        return self.request("POST", path, **options)

    def request(self, method: str, path: str, **options) -> httpx.Response:
        """Ask over a connection of its own.

        The client is kept: to read the certificates of all authorities for a new one takes 50 ms.
        """
        if self._http is None:
            alone = httpx.Limits(max_keepalive_connections=0)
            self._http = httpx.Client(base_url=self.address, verify=False, limits=alone, timeout=60)
        return self._http.request(method, path, **options)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self, seconds: float = 60.0) -> int:
        """Its exit status; what else it said is kept."""
        _, said = self.process.communicate(timeout=seconds)
        self.said += said
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        if self._http is not None:
            self._http.close()


READY_SECONDS = 120.0
"""How long a server may take to start while other tests use the machine."""


@pytest.fixture(scope="module")
def start_server():
    """Like ``serve``, for all tests of a module."""
    yield from _serving()


@pytest.fixture
def serve():
    """Start a server on a file, and wait until it is ready."""
    yield from _serving()


def _serving():
    started = []

    def serve(file, port: int = 0, *options: str, is_awaited: bool = True, **how) -> Server:
        started.append(Server(file, port, *options, **how))
        if is_awaited:
            started[-1].wait_ready()
        return started[-1]

    yield serve
    for server in started:
        server.close()
