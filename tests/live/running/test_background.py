"""Work in the background goes on soon after an outage of the store, and shares few threads."""

from collections import Counter
from threading import Event, Semaphore

import pytest
from waiting import wait_until

from submax.core.errors import StoreError
from submax.live.bandits.bandit import Bandit
from submax.live.bandits.open import open_bandit
from submax.live.running import repeated_step
from submax.live.running.background import Background
from submax.live.running.scheduler import WORKERS, Scheduler
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore

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


def test_a_step_is_tried_again_soon_during_an_outage_and_rarely_after_a_defect(started):
    defect, outage = Failing(ValueError("a defect")), Failing(StoreError("an outage"))
    failing = started(defect.step)
    started(outage.step)
    wait_until(lambda: outage.calls >= 50 and defect.calls >= 2)
    # Each pause is four times the last one, so that the tenth call comes after minutes.
    assert failing.failures <= defect.calls < 10
    outage.error, before = None, outage.calls
    wait_until(lambda: outage.calls > before)


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(started, caplog):
    failing = Failing(StoreError("the disk is full"))
    running = started(failing.step)
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
    scheduler = Scheduler()
    yield scheduler
    scheduler.close()


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


class CountingStore(SQLiteStore):
    reads = 0

    def read(self, *given, **named):
        self.reads += 1
        return super().read(*given, **named)


def test_a_bandit_with_shared_threads_learns_and_then_rests(
    tmp_path, scheduler, started, monkeypatch
):
    monkeypatch.setattr("submax.live.bandits.bandit.POLL_SECONDS", 0.05)
    store, turns = CountingStore(tmp_path / "page.db"), []
    started(lambda: turns.append(None), scheduler)
    other = open_bandit(store, name="page", background=False, **DECLARED)
    bandit = Bandit.of_store(store, "page", scheduler=scheduler)
    reward(bandit)
    wait_until(lambda: bandit.version >= 1)

    def rests():
        """Whether nothing is read while the steps of the bandit have several turns."""
        reads, last = store.reads, len(turns) + 20
        wait_until(lambda: len(turns) > last)
        return store.reads == reads

    wait_until(rests)
    # A change by another object of this process is seen without asking for it.
    other.pause("B")
    wait_until(lambda: bandit.menu.active == ((0,),))
    bandit.stop()
    store.close()
