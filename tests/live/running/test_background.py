"""Work in the background goes on soon after an outage of the store, and shares few threads."""

from collections import Counter
from contextlib import closing
from threading import Event, Semaphore

import pytest
from waiting import wait_until

from submax.core.errors import StoreError
from submax.live.bandits.open import open_bandit
from submax.live.running import repeated_step
from submax.live.running.background import Background
from submax.live.running.scheduler import WORKERS, Scheduler
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

    def started(step, scheduler=None):
        running.append(Background("test", step, 0.001, scheduler=scheduler))
        return running[-1]

    yield started
    for one in running:
        one.stop()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(repeated_step, "OUTAGE_PAUSE_SECONDS", 0.01)


def test_a_step_is_tried_again_soon_during_an_outage_and_rarely_after_a_defect(started, caplog):
    defect, outage = Failing(ValueError("a defect")), Failing(StoreError("the disk is full"))
    failing, running = started(defect.step), started(outage.step)
    wait_until(lambda: outage.calls >= 50 and defect.calls >= 2)
    # Each pause is four times the last one, so that the tenth call comes after minutes.
    assert failing.failures <= defect.calls < 10
    outage.error = None
    wait_until(lambda: outage.calls > running.failures + 5)
    # An outage is logged when it begins and when it ends.
    logged = [one.getMessage() for one in caplog.records if one.levelname != "ERROR"]
    assert "the disk is full" in logged[0]
    assert len(logged) == 2


class Unreachable(MemoryStore):
    """A store that cannot be used during an outage."""

    down = False

    def read(self, stream, after=0, limit=10_000):
        if self.down:
            raise StoreError("the store is down")
        return super().read(stream, after, limit)


DECLARED = {"actions": ["A", "B"], "reward_wait": 0, "refit_rows": 5, "refit_seconds": 0.1}


def reward(bandit):
    for made in bandit.decide_many([{}] * 50):
        bandit.reward(made.id, 1.0)


def test_a_version_is_fitted_after_an_outage():
    store = Unreachable()
    with open_bandit(store, **DECLARED) as bandit:
        reward(bandit)
        store.down = True
        wait_until(lambda: bandit.failures[FAILURES] >= 3)
        before, store.down = bandit.version, False
        reward(bandit)
        wait_until(lambda: bandit.version > before)


@pytest.mark.slow
def test_followers_and_fits_resume_after_postgres_is_back(postgres, postgres_address):
    with open_bandit(postgres_address, name="page", **DECLARED) as bandit:
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


@pytest.fixture
def scheduler():
    with closing(Scheduler()) as scheduler:
        yield scheduler


def test_steps_that_take_for_ever_leave_threads_for_the_others(scheduler, started):
    go, began, calls = Event(), Semaphore(0), Counter()

    def wait():
        began.release()
        go.wait(60)

    for _ in range(WORKERS - 1):
        started(wait, scheduler)
        assert began.acquire(timeout=60)
    for number in range(100):
        started(lambda number=number: calls.update([number]), scheduler)
    wait_until(lambda: len(calls) == 100 and min(calls.values()) >= 5)
    go.set()
