import httpx
import numpy as np
import pytest
from in_process import InProcess
from server_process import start_server  # noqa: F401 - fixtures
from waiting import wait_until

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.server.app import App
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


class Client(InProcess):
    """Asks an application in this process, as a browser or as a program."""

    def page(self, path: str, **options) -> httpx.Response:
        """What a browser gets."""
        headers = {**BROWSER, **options.pop("headers", {})}
        return self.get(path, headers=headers, **options)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Serves a new store, which ``fill`` declares bandits in."""
    clients = []

    def served(fill, **options) -> Client:
        store = open_store(tmp_path_factory.mktemp("pages") / "shop.db")
        fill(store)
        service = Service(store)
        clients.append(Client(App(service, **options)))
        wait_until(lambda: service.ready)
        return clients[-1]

    yield served
    for client in clients:
        client.close()
