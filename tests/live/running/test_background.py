"""Work in the background goes on soon after an outage of the store."""

import pytest
from waiting import wait_until

from submax.core.errors import StoreError
from submax.live.bandits.open import open_bandit
from submax.live.running import repeated_step
from submax.live.running.background import Background
from submax.live.store.memory_store import MemoryStore

FAILURES = "steps in the background"


class Failing:
    def __init__(self, error):
        self.error, self.calls = error, 0

    def step(self):
        self.calls += 1
        if self.error is not None:
            raise self.error


@pytest.fixture
def started():
    running = []

    def started(step, pause):
        running.append(Background("test", step, pause))
        return running[-1]

    yield started
    for one in running:
        one.stop()


@pytest.fixture
def short_pauses(monkeypatch):
    monkeypatch.setattr(repeated_step, "OUTAGE_PAUSE_SECONDS", 0.01)


@pytest.mark.usefixtures("short_pauses")
def test_a_step_is_tried_again_soon_during_an_outage_and_rarely_after_a_defect(started):
    defect, outage = Failing(ValueError("a defect")), Failing(StoreError("an outage"))
    failing = started(defect.step, 0.001)
    started(outage.step, 0.001)
    wait_until(lambda: outage.calls >= 50 and defect.calls >= 2)
    # Each pause is four times the last one, so that the tenth call comes after minutes.
    assert failing.failures <= defect.calls < 10
    outage.error, before = None, outage.calls
    wait_until(lambda: outage.calls > before)


@pytest.mark.usefixtures("short_pauses")
def test_an_outage_is_logged_when_it_begins_and_when_it_ends(started, caplog):
    failing = Failing(StoreError("the disk is full"))
    running = started(failing.step, 0.001)
    wait_until(lambda: running.failures >= 5)
    (begin,) = caplog.records
    assert "the disk is full" in begin.getMessage()
    failing.error = None
    wait_until(lambda: len(caplog.records) == 2)
    wait_until(lambda: failing.calls > running.failures + 5)
    assert len(caplog.records) == 2


class Unreachable(MemoryStore):
    """A store that cannot be used during an outage."""

    down = False

    def read(self, stream, after=0, limit=10_000):
        if self.down:
            raise StoreError("the store is down")
        return super().read(stream, after, limit)


def reward(bandit):
    for made in bandit.decide_many([{}] * 50):
        bandit.reward(made.id, 1.0)


@pytest.mark.usefixtures("short_pauses")
def test_a_version_is_fitted_after_an_outage():
    store = Unreachable()
    with open_bandit(
        store, actions=["A", "B"], reward_wait=0, refit_rows=5, refit_seconds=0.1
    ) as bandit:
        reward(bandit)
        store.down = True
        wait_until(lambda: bandit.failures[FAILURES] >= 3)
        before, store.down = bandit.version, False
        reward(bandit)
        wait_until(lambda: bandit.version > before)


@pytest.mark.slow
@pytest.mark.usefixtures("short_pauses")
def test_followers_and_fits_resume_after_postgres_is_back(postgres, postgres_address):
    with open_bandit(
        postgres_address, name="page", actions=["A"], reward_wait=0, refit_rows=5, refit_seconds=0.1
    ) as bandit:
        reward(bandit)
        wait_until(lambda: bandit.version >= 1)
        postgres.stop()
        try:
            wait_until(lambda: bandit.failures[FAILURES] >= 3)
        finally:
            postgres.start()
        before = bandit.version
        reward(bandit)
        wait_until(lambda: bandit.version > before)
