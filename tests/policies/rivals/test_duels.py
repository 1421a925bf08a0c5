"""Relative UCB and double Thompson sampling, compared with their papers' algorithms as loops."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from submax import Feedback, Problem, Slots
from submax.policies import DoubleThompson, RelativeUCB

ARMS = 4


def duel(pair, won):
    shape = (1, 1)
    return Feedback(
        np.zeros((1, 1, 0)), np.array([[pair]]), np.full(shape, float(won)), None, np.ones(shape)
    )


def bounds(wins, number, alpha, sign):
    """The bounds before duel ``number``, as nested lists."""
    table = [[0.5] * len(wins) for _ in wins]
    for i, j in itertools.permutations(range(len(wins)), 2):
        n = wins[i][j] + wins[j][i]
        share, radius = (wins[i][j] / n, math.sqrt(alpha * math.log(number) / n)) if n else (1, 1)
        table[i][j] = share + sign * radius
    return table


def test_relative_ucb_draws_the_pairs_of_the_paper(seed):
    policy, rng = RelativeUCB(0.6), np.random.default_rng(seed)
    state, arms = policy.init(Problem(Slots((ARMS, ARMS))), 1, rng), range(ARMS)
    wins, best, beliefs = [[0] * ARMS for _ in arms], set(), set()
    for number in range(1, 200):
        upper = bounds(wins, number, 0.6, 1)
        candidates = {i for i in arms if all(upper[i][j] >= 0.5 for j in arms)}
        best = candidates if len(candidates) == 1 else best & candidates
        expected = np.zeros((ARMS, ARMS))
        for i in candidates or arms:
            if len(candidates) == 1:
                share = 1.0
            elif i in best:
                share = 0.5
            else:
                share = 1 / (2 ** len(best) * len((candidates or set(arms)) - best))
            highest = max(upper[j][i] for j in arms)
            rivals = [j for j in arms if upper[j][i] == highest]
            rivals = [j for j in rivals if j != i] or rivals
            expected[i, rivals] = share / len(rivals)
        found = policy.probabilities(state, np.zeros((1, 1, 0)))[0, 0].reshape(ARMS, ARMS)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        beliefs.add((len(best), min(len(candidates), 2)))
        # The first arm wins until it is the only candidate, and then loses.
        i, j = policy.act(state, np.zeros((1, 1, 0)), rng).action[0, 0].tolist()
        won = (i < j) == (number < 120)
        wins[i if won else j][j if won else i] += 1
        state = policy.update(state, duel([i, j], won), rng)
    assert {(1, 1), (0, 2)} <= beliefs


def exact_pairs(wins, number, alpha):
    """The probabilities of all pairs: every outcome of the first draw, integrals for the second."""
    arms = range(len(wins))
    pairs = list(itertools.combinations(arms, 2))
    ahead = {(i, j): beta.sf(0.5, wins[i][j] + 1, wins[j][i] + 1) for i, j in pairs}
    upper, lower = bounds(wins, number, alpha, 1), bounds(wins, number, alpha, -1)
    possible = [sum(upper[i][j] > 0.5 for j in arms if j != i) for i in arms]
    first = np.zeros(len(wins))
    for outcome in itertools.product([True, False], repeat=len(pairs)):
        chance, beaten = 1.0, [0] * len(wins)
        for (i, j), won in zip(pairs, outcome, strict=True):
            chance *= ahead[i, j] if won else 1 - ahead[i, j]
            beaten[i if won else j] += 1
        candidates = [i for i in arms if possible[i] == max(possible)]
        most = [i for i in candidates if beaten[i] == max(beaten[k] for k in candidates)]
        first[most] += chance / len(most)
    return np.array([first[i] * second_arm(wins, lower, i) for i in arms])


def second_arm(wins, lower, first):
    """The probability of each second arm, by numerical integration."""
    rivals = [j for j in range(len(wins)) if j != first and lower[j][first] <= 0.5]
    posterior = {j: beta(wins[j][first] + 1, wins[first][j] + 1) for j in rivals}
    shares = np.zeros(len(wins))
    for j in rivals:

        def density(x, j=j):
            return posterior[j].pdf(x) * math.prod(posterior[k].cdf(x) for k in rivals if k != j)

        shares[j] = quad(density, 0.5, 1.0)[0]
    shares[first] = math.prod(posterior[j].cdf(0.5) for j in rivals)
    return shares


@pytest.mark.parametrize(
    "wins",
    [
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 3, 1], [1, 0, 2], [2, 2, 0]],
        [[0, 9, 7], [1, 0, 5], [2, 4, 0]],
    ],
)
def test_double_thompson_draws_pairs_with_the_probabilities_of_the_paper(wins, seed):
    policy, rng = DoubleThompson(draws=4000), np.random.default_rng(seed)
    state = policy.init(Problem(Slots((3, 3))), 1, rng)
    for i, j in itertools.permutations(range(3), 2):
        for _ in range(wins[i][j]):
            state = policy.update(state, duel([i, j], True), rng)
    expected = exact_pairs(wins, np.sum(wins) + 1, policy.exploration)
    assert expected.sum() == pytest.approx(1.0, abs=1e-6)
    found = policy.probabilities(state, np.zeros((1, 1, 0)))[0, 0].reshape(3, 3)
    error = np.sqrt(expected * (1 - expected) / policy.draws)
    # Bernstein's allowance for rare pairs: nine comparisons, each wrong once in 10⁹ times.
    assert np.all(np.abs(found - expected) < 6.6 * error + 15 / policy.draws)
