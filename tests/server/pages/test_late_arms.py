"""An arm whose rewards come late is named, with what is wrong with its numbers."""

import numpy as np
import pytest

import submax
from submax.testing.manual_clock import ManualClock
from submax.web.server.pages.alerts import alerts
from submax.web.server.pages.arms.late_arms import arm_delays

PLAIN, LATE = "AB", "C"


@pytest.fixture
def play(seed):
    """Let a bandit decide uniformly; rewards come after 1 s, and those of the last arm later."""

    def play(chance, delay, **options):
        clock, rng = ManualClock(), np.random.default_rng(seed)
        bandit = submax.Bandit([*PLAIN, LATE], policy="random", clock=clock, **options)
        coming = []
        for _ in range(100):
            for one in bandit.decide_many([{}] * 9):
                wait = delay if one.action == LATE else 1.0
                if rng.random() < chance:
                    coming.append((clock.now + wait * rng.uniform(0.5, 1.5), one.id))
            clock.now += 2.0
            due = [one for one in coming if one[0] <= clock.now]
            coming = [one for one in coming if one[0] > clock.now]
            if due:
                bandit.reward_many([{"id": one, "value": 1.0} for _, one in due])
        bandit.refit()
        return bandit

    return play


@pytest.mark.filterwarnings("ignore::submax.LateRewardWarning")
def test_an_arm_with_late_rewards_is_named_and_not_called_broken(play):
    bandit = play(0.5, 60.0, reward_wait=10, default_reward=0.0)
    slowest, *others = arm_delays(bandit, bandit.rollups())
    assert (slowest.choice, slowest.notable) == (LATE, True)
    assert not any(one.notable for one in others)
    assert slowest.late > 0.9
    assert 20 < slowest.median < 120
    (said,) = alerts(bandit, bandit.rollups())
    assert "Rewards of C come late" in said
    assert "after reward_wait (10 s) and are not learned from" in said


@pytest.mark.filterwarnings("ignore::submax.LateRewardWarning")
def test_how_much_more_a_late_arm_earns_is_estimated(play):
    bandit = play(0.7, 10.0, reward_wait=10, default_reward=0.0)
    (said,) = alerts(bandit, bandit.rollups())
    # Half of the rewards are late.
    assert "C earns more than its reward rate says, about" in said


def test_without_a_limit_the_newest_decisions_of_a_slow_arm_are_missing(play):
    bandit = play(0.5, 100.0, reward_wait=0)
    (said,) = alerts(bandit, bandit.rollups())
    assert "the newest decisions for C are missing" in said


@pytest.mark.parametrize(
    "options", [{"reward_wait": 10, "default_reward": 0.0}, {"reward_wait": 0}]
)
def test_arms_that_are_equally_quick_are_not_named(play, options):
    bandit = play(0.5, 1.0, **options)
    assert alerts(bandit, bandit.rollups()) == []
    assert len(arm_delays(bandit, bandit.rollups())) == 3
