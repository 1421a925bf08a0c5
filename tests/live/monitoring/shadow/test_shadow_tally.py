import math

import numpy as np
import pytest

from submax.live.monitoring.lift.lift_tally import PLANNED_DECISIONS, TYPICAL_VARIANCE
from submax.live.monitoring.shadow.shadow_tally import MAX_WEIGHT, ShadowTally
from submax.sequential.mixture_boundary import log_mixture, mixing_precision

RUNS, DECISIONS, LOOK = 300, 1000, 100
REWARDS = np.array([0.05, 0.1, 0.2])


def draws(rng, bandit, shadow, rewards, count):
    """Rewards, weights and clipped parts ``[RUNS, count]`` of decisions by the bandit."""
    action = rng.choice(len(bandit), p=bandit, size=(RUNS, count))
    reward = (rng.random(action.shape) < rewards[action]).astype(float)
    clipped = np.maximum(shadow - MAX_WEIGHT * bandit, 0.0).sum()
    return reward, (shadow / bandit)[action], clipped


@pytest.mark.parametrize(
    ("bandit", "shadow", "listed"),
    [
        ([0.2, 0.3, 0.5], [0.1, 0.1, 0.8], True),
        # A weight of 40, which are cut off.
        ([0.49, 0.49, 0.02], [0.1, 0.1, 0.8], True),
        ([0.49, 0.49, 0.02], [0.1, 0.1, 0.8], False),
    ],
)
def test_the_truth_is_outside_at_any_look_in_at_most_five_percent_of_runs(
    bandit, shadow, listed, seed
):
    rng = np.random.default_rng([seed, len(bandit), listed])
    bandit, shadow = np.array(bandit), np.array(shadow)
    reward, weight, clipped = draws(rng, bandit, shadow, REWARDS, DECISIONS)
    truth = float(REWARDS @ (shadow - bandit))
    part = np.full(LOOK, clipped if listed else -1.0)
    missed = np.zeros(RUNS, dtype=bool)
    scale = MAX_WEIGHT - 1
    mixing = mixing_precision(PLANNED_DECISIONS * TYPICAL_VARIANCE, 0.05)
    for run in range(RUNS):
        tally, looks = ShadowTally(0.0), []
        for first in range(0, DECISIONS, LOOK):
            span = slice(first, first + LOOK)
            tally = tally.add(reward[run, span], weight[run, span], part, (0.0, 1.0))
            looks.append((tally.low_sum, tally.high_sum, tally.low_squares, tally.high_squares))
        low, high, low_squares, high_squares = np.array(looks).T
        count = np.arange(LOOK, DECISIONS + 1, LOOK)
        # An end of the interval is where the mixture reaches its limit.
        above = log_mixture(np.maximum(low - truth * count, 0.0), low_squares, scale, mixing)
        below = log_mixture(np.maximum(truth * count - high, 0.0), high_squares, scale, mixing)
        missed[run] = (np.maximum(above, below) >= math.log(2 / 0.05)).any()
    assert missed.mean() <= 0.05
    last = tally.lift((0.0, 1.0))
    assert last.low < truth < last.high or missed[-1]
    if listed and clipped == 0:
        fixed = 1.96 * math.sqrt(np.var((reward - reward.mean()) * (weight - 1)) / DECISIONS)
        # The interval says something: it is shorter than five times that of a single look.
        assert last.high - last.low < 5 * 2 * fixed
