"""Arms that seem broken and arms whose rewards come late are named, and others are not."""

import pytest

from submax.server.pages.views import arms_page, health, overview

LIMITED = {"reward_wait": 10, "default_reward": 0.0}


def play_with_delays(bandit, rng, clock, chance, delay):
    """Play with rewards that come after 1 s, and those of the last arm later."""
    coming = []
    for _ in range(100):
        for one in bandit.decide_many([{}] * 9):
            wait = delay if one.action == "C" else 1.0
            if rng.random() < chance:
                coming.append((clock.now + wait * rng.uniform(0.5, 1.5), one.id))
        clock.now += 2.0
        due = [one for one in coming if one[0] <= clock.now]
        coming = [one for one in coming if one[0] > clock.now]
        if due:
            bandit.reward_many([{"id": one, "value": 1.0} for _, one in due])


def notes(bandit):
    return [(one.choice, one.words) for one in arms_page(bandit).notes]


@pytest.mark.parametrize(
    ("chance", "delay", "options"),
    [(0.5, 60.0, LIMITED), (0.7, 10.0, LIMITED), (0.5, 100.0, {"reward_wait": 0})],
)
def test_an_arm_with_late_rewards_is_named_and_not_called_broken(
    opened, rng, clock, chance, delay, options
):
    bandit = opened(policy="random", **options)
    play_with_delays(bandit, rng, clock, chance, delay)
    assert notes(bandit) == [("C", "late rewards")]
    assert any("'C'" in alert for alert in overview(bandit).alerts)
    slowest, *others = health(bandit).delays
    assert (slowest.choice, slowest.notable) == ("C", True)
    assert not any(one.notable for one in others)
    assert delay / 3 < slowest.median < 2 * delay
    if options is LIMITED:
        assert (slowest.late > 0.9) == (delay == 60.0)


@pytest.mark.parametrize("options", [LIMITED, {"reward_wait": 0}])
def test_arms_that_are_equally_quick_are_not_named(opened, rng, clock, options):
    bandit = opened(policy="random", **options)
    play_with_delays(bandit, rng, clock, 0.5, 1.0)
    assert notes(bandit) == []
    assert len(health(bandit).delays) == 3
