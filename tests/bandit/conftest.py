import pytest
from postgres_server import postgres, postgres_address  # noqa: F401 - pytest finds fixtures by their names here
from stored import clock, closed_stores, opened, store  # noqa: F401 - pytest finds fixtures by their names here

from submax.bandit.drawing import Draws
from submax.bandit.jobs import JobRunner


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
