"""How a shadow compares with the policy that decides, at any time."""

import math

import numpy as np
import pytest

from submax.live.monitoring.shadow.shadow_tally import MAX_WEIGHT, ShadowTally

RUNS, DECISIONS, LOOK = 300, 1000, 100
REWARDS = np.array([0.05, 0.1, 0.2])


@pytest.mark.parametrize(
    ("bandit", "listed"),
    # In the others, weights of 40 are cut off.
    [([0.2, 0.3, 0.5], True), ([0.49, 0.49, 0.02], True), ([0.49, 0.49, 0.02], False)],
)
def test_the_truth_is_outside_at_any_look_in_at_most_five_percent_of_runs(bandit, listed, seed):
    rng = np.random.default_rng([seed, len(bandit), listed])
    bandit, shadow = np.array(bandit), np.array([0.1, 0.1, 0.8])
    action = rng.choice(3, p=bandit, size=(RUNS, DECISIONS))
    reward, weight = (rng.random(action.shape) < REWARDS[action]) * 1.0, (shadow / bandit)[action]
    clipped = np.maximum(shadow - MAX_WEIGHT * bandit, 0.0).sum()
    part = np.full(LOOK, clipped if listed else -1.0)
    truth, missed = float(REWARDS @ (shadow - bandit)), 0
    for run in range(RUNS):
        tally, outside = ShadowTally(0.0), False
        for first in range(0, DECISIONS, LOOK):
            span = slice(first, first + LOOK)
            tally = tally.add(reward[run, span], weight[run, span], part, (0.0, 1.0))
            found = tally.lift((0.0, 1.0))
            outside |= not found.low <= truth <= found.high
        missed += outside
    assert missed / RUNS <= 0.05
    if clipped == 0:
        fixed = 1.96 * math.sqrt(np.var((reward - reward.mean()) * (weight - 1)) / DECISIONS)
        # The interval says something: it is shorter than five times that of a single look.
        assert found.high - found.low < 5 * 2 * fixed


def test_without_bounds_the_estimate_is_unbiased(seed):
    rng = np.random.default_rng([seed, 5])
    bandit, shadow = np.array([0.5, 0.5]), np.array([0.1, 0.9])
    means, found = np.array([1.0, 3.0]), []
    for _ in range(400):
        action = rng.choice(2, p=bandit, size=200)
        reward, weight = means[action] + rng.normal(size=200), (shadow / bandit)[action]
        tally = ShadowTally(0.0).add(reward, weight, np.full(200, -1.0), None)
        found.append(tally.lift(None).estimate)
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert abs(np.mean(found) - means @ (shadow - bandit)) <= 4 * error


def test_it_does_not_matter_how_decisions_are_divided(seed):
    rng = np.random.default_rng(seed)
    reward, weight = rng.random(100), rng.random(100) * 30
    clipped = np.where(rng.random(100) < 0.5, 0.1, -1.0)
    together = ShadowTally(0.0).add(reward, weight, clipped, (0.0, 1.0))
    apart = ShadowTally(0.0)
    for part in (slice(0, 1), slice(1, 60), slice(60, 100)):
        apart = apart.add(reward[part], weight[part], clipped[part], (0.0, 1.0))
    for name in ShadowTally.__struct_fields__:
        assert getattr(apart, name) == pytest.approx(getattr(together, name), rel=1e-12)
