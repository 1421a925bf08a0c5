"""Work in the background goes on soon after an outage of the store."""

import time
from itertools import pairwise

import pytest

from submax.core.errors import StoreError
from submax.live.bandits.open import open_bandit
from submax.live.running import repeated_step
from submax.live.running.background import Background
from submax.live.store.memory_store import MemoryStore

OUTAGE_SECONDS = 6.0
RESUMED_SECONDS = 5.0


class Failing:
    def __init__(self, error):
        self.error, self.calls = error, []

    def step(self):
        self.calls.append(time.monotonic())
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


@pytest.mark.slow
def test_a_step_is_tried_every_second_however_long_the_outage_is(started):
    failing = Failing(StoreError("the disk is full"))
    started(failing.step, 0.01)
    time.sleep(OUTAGE_SECONDS)
    failing.error, end = None, time.monotonic()
    while not failing.calls or failing.calls[-1] <= end:
        assert time.monotonic() < end + RESUMED_SECONDS
        time.sleep(0.01)
    gaps = [second - first for first, second in pairwise(failing.calls)]
    assert max(gaps) < repeated_step.OUTAGE_PAUSE_SECONDS + 1.0


def test_a_defect_is_tried_less_often(started, monkeypatch):
    monkeypatch.setattr(repeated_step, "OUTAGE_PAUSE_SECONDS", 0.01)
    failing, unreachable = Failing(ValueError("a defect")), Failing(StoreError("an outage"))
    steps = [started(one.step, 0.001) for one in (failing, unreachable)]
    time.sleep(1.0)
    assert 1 < len(failing.calls) < 10
    assert len(unreachable.calls) > 20
    assert steps[0].failures == len(failing.calls)


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(started, caplog):
    failing = Failing(StoreError("the disk is full"))
    running = started(failing.step, 0.001)
    _until(lambda: running.failures >= 5)
    failing.error = None
    _until(lambda: "can be used again" in caplog.text, RESUMED_SECONDS)
    assert [record.getMessage() for record in caplog.records] == [
        "test: the disk is full",
        "test: the store can be used again",
    ]


class Unreachable(MemoryStore):
    """A store that cannot be used during an outage."""

    down = False

    def read(self, stream, after=0, limit=10_000):
        if self.down:
            raise StoreError("the store is down")
        return super().read(stream, after, limit)


@pytest.mark.slow
def test_a_version_is_fitted_within_seconds_after_an_outage():
    store = Unreachable()
    with open_bandit(
        store, actions=["A", "B"], reward_wait=0, refit_rows=5, refit_seconds=1.0
    ) as bandit:
        _reward(bandit)
        store.down = True
        time.sleep(OUTAGE_SECONDS)
        before, store.down, end = bandit.version, False, time.monotonic() + RESUMED_SECONDS
        _reward(bandit)
        _until(lambda: bandit.version > before, end - time.monotonic())


@pytest.mark.slow
def test_followers_and_fits_resume_within_seconds_after_postgres_is_back(
    postgres, postgres_address
):
    with open_bandit(
        postgres_address, name="page", actions=["A"], reward_wait=0, refit_rows=5
    ) as bandit:
        _reward(bandit)
        _until(lambda: bandit.version >= 1)
        postgres.stop()
        try:
            time.sleep(OUTAGE_SECONDS)
        finally:
            postgres.start()
        back, before = time.monotonic(), bandit.version
        _reward(bandit)
        _until(lambda: bandit.version > before)
        assert time.monotonic() - back < RESUMED_SECONDS


def _reward(bandit):
    for made in bandit.decide_many([{}] * 50):
        bandit.reward(made.id, 1.0)


def _until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
