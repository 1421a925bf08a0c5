import pytest
from postgres_server import postgres, postgres_address  # noqa: F401 - fixtures
from stored import OPENED, new_store

from submax.bandit.drawing import Draws
from submax.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock):
    """A store for tests that need no path."""
    return new_store(clock)


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
