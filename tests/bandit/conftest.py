import numpy as np
import pytest
from postgres_server import postgres, postgres_address  # noqa: F401 - fixtures
from stored import OPENED, new_store

from submax.bandit.drawing import Draws
from submax.bandit.durable import open_bandit
from submax.bandit.jobs import JobRunner
from submax.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock):
    """A store for tests that need no path."""
    return new_store(clock)


@pytest.fixture(scope="module")
def jobs():
    runner = JobRunner()
    yield runner
    runner.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgresql"))])
def place(request, tmp_path):
    """The file or the address of a new store."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_address")
    return tmp_path / "store.db"


@pytest.fixture
def opened(store, clock, seed):
    """Opens a bandit in the store or another place; all are closed when the test is over."""
    bandits = []

    def opened(place=store, **others):
        options = {"name": "page", "background": False, "clock": clock}
        options["rng"] = np.random.default_rng(seed)
        declared = {"actions": ["A", "B", "C"], "policy": "thompson-1-1", "reward_wait": 10.0}
        bandits.append(open_bandit(place, **{**options, **declared, **others}))
        return bandits[-1]

    yield opened
    for bandit in bandits:
        bandit.close()


@pytest.fixture
def memory_draws(monkeypatch):
    """What each decision of a bandit in memory was drawn from: its id, choices and table."""
    found = {}

    class Watched(Draws):
        def draw(self, version, requests, **options):
            decisions = super().draw(version, requests, **options)
            for request, decision in zip(requests, decisions, strict=True):
                found[request.identifier] = request.eligible, decision.drawn.probabilities
            return decisions

    monkeypatch.setattr("submax.bandit.bandit.Draws", Watched)
    return found


@pytest.fixture(autouse=True)
def closed_stores():
    yield
    while OPENED:
        OPENED.pop().close()
