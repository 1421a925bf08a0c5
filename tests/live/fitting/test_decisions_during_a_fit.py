"""Decisions go on while a version is fitted, even if threads of Python take long turns."""

import sys
import time
from dataclasses import dataclass
from threading import Thread

import pytest
from refusals import raises_code

from submax.core.running.background_work import BackgroundWork
from submax.live.bandits import bandit as bandit_module
from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import model_name
from submax.live.store.memory_store import MemoryStore
from submax.policies.classic.thompson import Thompson

LONG_TURN = 0.25
FIT_SECONDS = 1.5


@dataclass(frozen=True)
class SlowUpdate(Thompson):
    def update(self, state, feedback, rng):
        end = time.monotonic() + FIT_SECONDS
        while time.monotonic() < end:
            pass
        return super().update(state, feedback, rng)


@pytest.fixture
def long_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(LONG_TURN)
    yield
    sys.setswitchinterval(before)


def test_decisions_do_not_wait_for_the_turns_of_a_fit(tmp_path, clock, long_turns):
    words = {"policy": SlowUpdate(), "reward_wait": 1, "background": False, "clock": clock}
    with open_bandit(tmp_path / "page.db", actions=["A", "B"], **words) as bandit:
        bandit.decide()
        clock.now += 2
        thread = Thread(target=bandit.refit)
        thread.start()
        made = 0
        while thread.is_alive():
            bandit.decide()
            made += 1
        thread.join()
    # Every decision waits for one turn at least, until it was written.
    assert made > 2 * FIT_SECONDS / LONG_TURN
    assert sys.getswitchinterval() == pytest.approx(LONG_TURN, abs=2e-6)


class NotingStore(MemoryStore):
    """Notes at every append whether a fit would wait."""

    def __init__(self, work, clock):
        super().__init__(clock)
        self.work, self.held_off = work, []

    def append(self, stream, entries):
        self.held_off.append(self.work.is_held_off)
        return super().append(stream, entries)


def test_a_fit_is_held_off_until_decisions_are_written(clock, monkeypatch):
    work = BackgroundWork()
    monkeypatch.setattr(bandit_module, "BACKGROUND", work)
    store = NotingStore(work, clock)
    with open_bandit(store, actions=["A", "B"], background=False, clock=clock) as bandit:
        store.held_off.clear()
        bandit.decide()
        assert store.held_off == [False]
        store.held_off.clear()
        with work:
            decision = bandit.decide()
            bandit.decide_many([{}, {}])
            bandit.reward(decision.id, 1.0)
            assert not work.is_held_off
        assert store.held_off == [True, True, False]


def test_a_new_version_decides_without_being_read_from_the_store(tmp_path, clock, monkeypatch):
    words = {"policy": "thompson-1-9", "reward_wait": 1, "background": False, "clock": clock}
    with open_bandit(tmp_path / "page.db", actions=["A", "B"], **words) as bandit:
        read, names = bandit.store.get_blob, []

        def get_blob(name):
            names.append(name)
            return read(name)

        monkeypatch.setattr(bandit.store, "get_blob", get_blob)
        bandit.decide()
        clock.now += 2
        assert bandit.refit().version == bandit.version == 1
        assert not [name for name in names if "/models/" in name]
        # Nobody publishes a version whose model is gone.
        (model,) = [one.model for one in bandit._live_state.projection.versions.values()]
        bandit.store.delete_blob(model_name(bandit.name, model))
        with raises_code("not-found"):
            bandit.publish(1)
