"""Decisions go on while a version is fitted, even if threads of Python take long turns."""

import sys
import time
from dataclasses import dataclass
from threading import Event, Thread

import pytest
from refusals import raises_code

from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import model_name
from submax.policies.classic.thompson import Thompson

LONG_TURN = 2.0
DECISIONS = 10
MADE, BEGUN = [], Event()


@dataclass(frozen=True)
class BusyUpdate(Thompson):
    """Computes until enough decisions were made, however long that takes."""

    def update(self, state, feedback, rng):
        BEGUN.set()
        while len(MADE) < DECISIONS:
            pass
        return super().update(state, feedback, rng)


@pytest.fixture
def long_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(LONG_TURN)
    yield
    sys.setswitchinterval(before)


def test_decisions_do_not_wait_for_the_turns_of_a_fit(tmp_path, clock, long_turns):
    words = {"policy": BusyUpdate(), "reward_wait": 1, "background": False, "clock": clock}
    with open_bandit(tmp_path / "page.db", actions=["A", "B"], **words) as bandit:
        bandit.decide()
        clock.now += 2
        thread = Thread(target=bandit.refit)
        thread.start()
        BEGUN.wait()
        begin = time.monotonic()
        for _ in range(DECISIONS):
            MADE.append(bandit.decide())
        # Otherwise every decision would wait for a turn, until it was written.
        assert time.monotonic() - begin < DECISIONS * LONG_TURN / 2
        thread.join()
    assert sys.getswitchinterval() == pytest.approx(LONG_TURN, abs=2e-6)


def test_nobody_publishes_a_version_whose_model_is_gone(store, clock):
    words = {"policy": "thompson-1-9", "reward_wait": 1, "background": False, "clock": clock}
    with open_bandit(store, actions=["A", "B"], **words) as bandit:
        bandit.decide()
        clock.now += 2
        assert bandit.refit().version == bandit.version == 1
        (fitted,) = bandit.versions()
        store.delete_blob(model_name(bandit.name, fitted.model))
        with raises_code("not-found"):
            bandit.publish(1)
