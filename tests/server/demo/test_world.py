import numpy as np
import pytest

from submax.web.server.demo.world import (
    ACTIONS,
    AFTER,
    BEFORE,
    QUICK,
    REWARD_WAIT,
    SLOW,
    DemoWorld,
)

WORLD = DemoWorld(half_time=30.0)
DRAWS = 2000


def test_the_best_headline_changes_at_half_time():
    def best(seconds):
        return max(ACTIONS, key=lambda action: WORLD.chance(action, seconds))

    assert [best(seconds) for seconds in (0.0, 29.9, 30.0, 59.9, 60.0)] == [
        "bold",
        "bold",
        "playful",
        "playful",
        "bold",
    ]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("seconds", [10.0, 40.0])
def test_purchases_come_as_often_and_as_late_as_declared(action, seconds, seed):
    rng = np.random.default_rng(seed)
    found = [WORLD.outcome(action, seconds, rng) for _ in range(DRAWS)]
    chance = (AFTER if seconds > 30 else BEFORE)[action]
    sold = sum(one.reward is not None for one in found)
    # Five standard errors; none at all if nothing is ever sold.
    assert abs(sold - DRAWS * chance) <= 5 * np.sqrt(DRAWS * chance * (1 - chance))
    low, high = SLOW if action == "slow" else QUICK
    delays = [one.delay for one in found]
    assert low <= min(delays) <= max(delays) <= high


def test_only_the_slow_headline_is_late():
    assert SLOW[0] < REWARD_WAIT < SLOW[1]
    assert QUICK[1] < REWARD_WAIT


def test_a_server_takes_its_declaration(http):
    answer = http.post("/bandits", json={"name": "demo", **WORLD.declaration()})
    assert answer.status_code == 201
