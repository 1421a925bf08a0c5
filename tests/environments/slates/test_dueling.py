"""The environment `Dueling`: preferences, and regret that is not measured by rewards."""

import itertools
import math

import numpy as np
import pytest

from submax import (
    make_policy,
    simulate,
)
from submax.research import Dueling

CYCLE = ((0.5, 0.8, 0.3), (0.2, 0.5, 0.9), (0.7, 0.1, 0.5))
ORDERED = ((0.5, 0.6, 0.9), (0.4, 0.5, 0.7), (0.1, 0.3, 0.5))


def losses(table, winner):
    """What each arm loses, as loops over the definitions."""
    arms = range(len(table))
    others = {i: [j for j in arms if j != i] for i in arms}
    if winner == "condorcet":
        best = next(i for i in arms if all(table[i][j] > 0.5 for j in others[i]))
        return [table[best][i] - 0.5 for i in arms]
    if winner == "copeland":
        scores = [sum(table[i][j] > 0.5 for j in others[i]) / len(others[i]) for i in arms]
    else:
        scores = [sum(table[i][j] for j in others[i]) / len(others[i]) for i in arms]
    return [max(scores) - score for score in scores]


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize(
    ("table", "winner"),
    [(ORDERED, "condorcet"), (ORDERED, "copeland"), (CYCLE, "copeland"), (CYCLE, "borda")],
)
def test_the_regret_of_a_pair_is_that_of_its_arms(table, winner, weak):
    duels = Dueling(preferences=table, winner=winner, weak=weak)
    world, pairs = duels.reset(2, np.random.default_rng(0)), duels.problem.space.listing()
    found = duels.regret(world, np.zeros((2, 9, 0)), np.tile(pairs, (2, 1, 1)))
    lost = losses(table, winner)
    expected = [
        min(lost[i], lost[j]) if weak else (lost[i] + lost[j]) / 2
        for i, j in itertools.product(range(3), repeat=2)
    ]
    np.testing.assert_allclose(found, [expected] * 2, atol=1e-12)


def test_preferences_follow_from_utilities():
    utilities = (1.0, -0.5, 800.0)
    world = Dueling(utilities=utilities).reset(1, np.random.default_rng(0))
    for i, j in itertools.product(range(3), repeat=2):
        ahead = utilities[i] - utilities[j]
        expected = 1 / (1 + math.exp(-ahead)) if ahead > -700 else 0.0
        assert world[0, i, j] == pytest.approx(expected, abs=1e-12)


def test_simulations_measure_regret_by_the_best_arm_and_not_by_rewards(seed):
    # A uniform choice wins half of its duels, and its regret is the mean loss of all arms.
    duels, decisions = Dueling(preferences=ORDERED), 400
    trace = simulate(duels, make_policy("random"), observations=decisions, replicas=20, seed=seed)
    lost = losses(ORDERED, "condorcet")
    of_pairs = [(one + other) / 2 for one, other in itertools.product(lost, repeat=2)]
    number = decisions * 20
    error = np.std(of_pairs) * math.sqrt(number)
    assert abs(trace.final_regret.sum() - number * np.mean(of_pairs)) < 5 * error
    assert abs(trace.final_reward.sum() - number / 2) < 5 * math.sqrt(number / 4)
