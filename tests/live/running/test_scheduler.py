"""Many steps share a few threads, and each has its turn."""

import threading
import time
from collections import Counter
from threading import Event

import pytest

from submax.live.bandits.open import open_bandit
from submax.live.running.background import Background
from submax.live.running.scheduler import WORKERS, Scheduler
from submax.live.store.sqlite_store import SQLiteStore

STEPS = 200


@pytest.fixture
def scheduler():
    scheduler = Scheduler()
    yield scheduler
    scheduler.close()


def wait_until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_every_step_has_its_turn_before_another_has_many(scheduler):
    before, calls = threading.active_count(), Counter()
    steps = [
        Background(
            f"step {number}",
            lambda number=number: calls.update([number]),
            0.001,
            scheduler=scheduler,
        )
        for number in range(STEPS)
    ]
    wait_until(lambda: len(calls) == STEPS and min(calls.values()) >= 3)
    counts = Counter(calls)
    # Steps that were added first had more turns, but not more than those that began together.
    assert max(counts.values()) <= 3 * min(counts.values()) + 10
    assert threading.active_count() == before
    for one in steps:
        one.stop()


def test_steps_that_take_for_ever_leave_threads_for_the_others(scheduler):
    go, calls = Event(), Counter()
    stuck = [
        Background(f"stuck {number}", lambda: go.wait(60), 0.001, scheduler=scheduler)
        for number in range(WORKERS - 1)
    ]
    time.sleep(0.1)
    others = [
        Background(
            f"other {number}",
            lambda number=number: calls.update([number]),
            0.001,
            scheduler=scheduler,
        )
        for number in range(20)
    ]
    wait_until(lambda: len(calls) == 20 and min(calls.values()) >= 5)
    go.set()
    for one in stuck + others:
        one.stop()


def test_a_step_without_work_is_not_called(scheduler):
    calls, work = [], Event()
    step = Background(
        "step", lambda: calls.append(None), 0.001, scheduler=scheduler, has_work=work.is_set
    )
    time.sleep(0.3)
    assert not calls
    work.set()
    wait_until(lambda: len(calls) > 3)
    step.stop()
    count = len(calls)
    time.sleep(0.1)
    assert len(calls) == count


def test_a_bandit_with_shared_threads_learns_and_then_rests(tmp_path, scheduler, monkeypatch):
    store = SQLiteStore(tmp_path / "page.db")
    open_bandit(
        store,
        name="page",
        actions=["A", "B"],
        reward_wait=0,
        refit_rows=10,
        refit_seconds=0.1,
        background=False,
    )
    bandit = type(open_bandit(store, name="page", background=False)).of_store(
        store, "page", scheduler=scheduler
    )
    made = bandit.decide_many([{}] * 20)
    bandit.reward_many([{"id": one.id, "value": 1.0} for one in made])
    wait_until(lambda: bandit.version >= 1)
    reads = []
    time.sleep(1.5)
    read = SQLiteStore.read
    monkeypatch.setattr(SQLiteStore, "read", lambda *given: (reads.append(given), read(*given))[1])
    time.sleep(1.5)
    assert not reads
    # A change by another object of this process is seen without asking for it.
    other = open_bandit(store, name="page", background=False)
    other.pause("B")
    wait_until(lambda: bandit.menu.active == ((0,),))
    bandit.stop()
    store.close()
