"""An arm for which no reward comes any more is named, and one that is only worse is not."""

import numpy as np
import pytest

import submax
from submax.testing.manual_clock import ManualClock
from submax.web.server.pages.arms.silent_arms import RARE, silent_arms


@pytest.fixture
def play():
    """Let a bandit decide uniformly by the hour; the chances of its arms may change."""
    clock = ManualClock()
    bandit = submax.Bandit(
        ["A", "B", "C"], policy="random", clock=clock, reward_wait=60, default_reward=0.0
    )

    def play(chances, hours, rng):
        for _ in range(hours):
            for one in bandit.decide_many([{}] * 60):
                if rng.random() < chances["ABC".index(one.action)]:
                    bandit.reward(one.id, 1.0)
            clock.now += 3600
            bandit.decide()
        bandit.refit()
        return silent_arms(bandit, bandit.rollups())

    return play


def test_an_arm_that_never_earned_is_named(play, seed):
    (found,) = play([0.3, 0.2, 0.0], 12, np.random.default_rng(seed))
    assert (found.choice, found.seconds) == ("C", None)
    assert "No reward has ever come for C" in found.sentence
    assert (1 - found.expected) ** found.decisions < RARE


def test_an_arm_that_breaks_is_named(play, seed):
    rng = np.random.default_rng(seed)
    assert play([0.5, 0.4, 0.4], 5, rng) == []
    (found,) = play([0.5, 0.4, 0.0], 5, rng)
    assert found.choice == "C"
    assert "in its last" in found.sentence
    assert "before, at least" in found.sentence


def test_an_arm_that_is_only_worse_is_not_named(play):
    # The chance that 240 decisions have no success at all, 0.94 ** 240, is 4e-7 for each arm.
    assert play([0.5, 0.06, 0.06], 12, np.random.default_rng(0)) == []
