import asyncio
from contextlib import suppress
from threading import Thread

import httpx
import numpy as np
import pytest
from forked_command import start_command
from waiting import wait_until

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.server.app import App
from submax.server.pages.routes import Pages
from submax.server.service import Service
from submax.testing import ManualClock

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def clock():
    return ManualClock(1e9)


@pytest.fixture
def opened(tmp_path, clock, seed):
    """Opens a bandit in a new store, with a clock that is moved."""
    bandits = []

    def opened(**declared):
        file = tmp_path / f"{len(bandits)}.db"
        options = {"name": "b", "actions": ["A", "B", "C"], "clock": clock, "background": False}
        options["rng"] = np.random.default_rng(seed + 1)
        bandits.append(open_bandit(file, **{**options, **declared}))
        return bandits[-1]

    yield opened
    for bandit in bandits:
        bandit.close()


class Client:
    """Asks an application in this process, as a browser or as a program."""

    def __init__(self, app: App) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self._app, self.service = app, app.service
        self._events: asyncio.Queue = asyncio.Queue()
        self._lifespan = asyncio.run_coroutine_threadsafe(self._live(), self._loop)
        transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        wait_until(lambda: self.service.ready)

    async def _live(self) -> None:
        async def ignore(message):
            pass

        with suppress(asyncio.CancelledError):
            await self._events.put({"type": "lifespan.startup"})
            await self._app({"type": "lifespan"}, self._events.get, ignore)

    def request(self, method: str, path: str, **options) -> httpx.Response:
        asked = self._client.request(method, path, **options)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(60)

    def get(self, path: str, **options) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options) -> httpx.Response:
        return self.request("POST", path, **options)

    def page(self, path: str, **options) -> httpx.Response:
        """What a browser gets."""
        headers = {**BROWSER, **options.pop("headers", {})}
        return self.get(path, headers=headers, **options)

    def close(self) -> None:
        stop = {"type": "lifespan.shutdown"}
        asyncio.run_coroutine_threadsafe(self._events.put(stop), self._loop).result(60)
        self._lifespan.result(60)
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Serves a new store, which ``fill`` declares bandits in."""
    clients = []

    def served(fill, **options) -> Client:
        store = open_store(tmp_path_factory.mktemp("pages") / "shop.db")
        fill(store)
        clients.append(Client(App(Service(store), pages=Pages, **options)))
        return clients[-1]

    yield served
    for client in clients:
        client.close()


class Server:
    """The command ``serve`` in a process of its own."""

    def __init__(self, file, port: int = 0) -> None:
        self.process = start_command("serve", str(file), "--port", str(port))
        self.address = self.process.stderr.readline().rpartition(" ")[2].strip()
        # A pipe that is not read would stop the server.
        self._reader = Thread(target=self.process.stderr.read, daemon=True)
        self._reader.start()
        wait_until(self._is_ready, READY_SECONDS)

    def _is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.address}/readyz", timeout=60).status_code == 200
        return False

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def post(self, path: str, **options) -> httpx.Response:
        return httpx.post(f"{self.address}{path}", timeout=60, **options)

    def kill(self) -> None:
        self.process.kill()
        wait_until(lambda: self.process.poll() is not None, 60)
        self._reader.join(60)
        self.process.stderr.close()


READY_SECONDS = 120.0
"""How long a server may take to start while other tests use the machine."""


@pytest.fixture(scope="module")
def start_server():
    """Start a server on a file, and wait until it is ready."""
    started = []

    def start_server(file, port: int = 0) -> Server:
        started.append(Server(file, port))
        return started[-1]

    yield start_server
    for server in started:
        if server.process.poll() is None:
            server.kill()
