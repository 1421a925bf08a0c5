"""Many steps share a few threads, and each has its turn."""

import threading
from collections import Counter
from threading import Event, Semaphore

import pytest
from waiting import wait_until

from submax.live.bandits.bandit import Bandit
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


def counted(scheduler, steps):
    """Steps that count their calls, and the counts."""
    calls = Counter()
    return calls, [
        Background(
            f"step {number}",
            lambda number=number: calls.update([number]),
            0.001,
            scheduler=scheduler,
        )
        for number in range(steps)
    ]


def test_every_step_has_its_turn_before_another_has_many(scheduler):
    before = threading.active_count()
    calls, steps = counted(scheduler, STEPS)
    wait_until(lambda: len(calls) == STEPS and min(calls.values()) >= 3)
    counts = Counter(calls)
    # Steps that were added first had more turns, but not more than those that began together.
    assert max(counts.values()) <= 3 * min(counts.values()) + 10
    assert threading.active_count() <= before
    for one in steps:
        one.stop()


def test_steps_that_take_for_ever_leave_threads_for_the_others(scheduler):
    go, began = Event(), Semaphore(0)

    def wait():
        began.release()
        go.wait(60)

    stuck = [Background("stuck", wait, 0.001, scheduler=scheduler) for _ in range(WORKERS - 1)]
    for _ in stuck:
        assert began.acquire(timeout=60)
    calls, others = counted(scheduler, 20)
    wait_until(lambda: len(calls) == 20 and min(calls.values()) >= 5)
    go.set()
    for one in stuck + others:
        one.stop()


class Witness:
    """A step that shows that others had their turns as well."""

    def __init__(self, scheduler):
        self.calls = 0
        Background("witness", self.step, 0.001, scheduler=scheduler)

    def step(self):
        self.calls += 1

    def wait(self, turns):
        before = self.calls
        wait_until(lambda: self.calls > before + turns)


def test_a_step_without_work_is_not_called(scheduler):
    calls, work, witness = [], Event(), Witness(scheduler)
    step = Background(
        "step", lambda: calls.append(None), 0.001, scheduler=scheduler, has_work=work.is_set
    )
    witness.wait(turns=5)
    assert not calls
    work.set()
    wait_until(lambda: len(calls) > 3)
    step.stop()
    count = len(calls)
    witness.wait(turns=5)
    assert len(calls) == count


class CountingStore(SQLiteStore):
    reads = 0

    def read(self, *given, **named):
        self.reads += 1
        return super().read(*given, **named)


def test_a_bandit_with_shared_threads_learns_and_then_rests(tmp_path, scheduler, monkeypatch):
    monkeypatch.setattr("submax.live.bandits.bandit.POLL_SECONDS", 0.05)
    store, witness = CountingStore(tmp_path / "page.db"), Witness(scheduler)
    declared = {"actions": ["A", "B"], "reward_wait": 0, "refit_rows": 10, "refit_seconds": 0.1}
    other = open_bandit(store, name="page", background=False, **declared)
    bandit = Bandit.of_store(store, "page", scheduler=scheduler)
    made = bandit.decide_many([{}] * 20)
    bandit.reward_many([{"id": one.id, "value": 1.0} for one in made])
    wait_until(lambda: bandit.version >= 1)

    def rests():
        """Whether nothing is read while the steps of the bandit have several turns."""
        before = store.reads
        witness.wait(turns=20)
        return store.reads == before

    wait_until(rests)
    # A change by another object of this process is seen without asking for it.
    other.pause("B")
    wait_until(lambda: bandit.menu.active == ((0,),))
    bandit.stop()
    store.close()
