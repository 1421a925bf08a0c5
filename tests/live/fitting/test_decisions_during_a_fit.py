"""Decisions go on while a version is fitted, even if threads of Python take long turns."""

import sys
import time
from dataclasses import dataclass
from threading import Thread

import pytest

from submax.live.bandits.open import open_bandit
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
