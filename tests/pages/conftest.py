import numpy as np
import pytest
from in_process import shared_serving  # noqa: F401 - fixtures
from server_process import start_server  # noqa: F401 - fixtures

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.testing import ManualClock


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


@pytest.fixture(scope="module")
def served(shared_serving, tmp_path_factory):  # noqa: F811 - the fixture
    """Serves a new store, which ``fill`` declares bandits in."""

    def served(fill):
        store = open_store(tmp_path_factory.mktemp("pages") / "shop.db")
        fill(store)
        return shared_serving(store)

    return served
