"""Counting, and the constants that are added to counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import betaln, gammaln

from submax import Arms, Discrete, Problem, Slots
from submax.estimators.counting import FIRST_WEIGHTS, RATES, SWITCH_RATE, Counting, fitted_smoothing
from submax.testing.problems import fixed_levels, some_feedback

PROBLEMS = (
    Problem(Arms(4)),
    Problem(Slots((2, 3))),
    Problem(Arms(3), scale=Discrete((-1.0, 0.0, 2.0))),
)


def slow_counts(problem, feedback, smoothing, replica):
    """Conditioned probabilities, prior and values of one replica, one observation at a time."""
    size, levels = problem.space.size, fixed_levels(problem.scale)
    counts = [[0.0] * size for _ in levels]
    observations = []
    for row in range(feedback.reward.shape[1]):
        weight = feedback.weight[replica, row]
        if weight == 0:
            continue
        reward = feedback.reward[replica, row]
        arm = int(problem.space.index(feedback.action[replica, row]))
        level = min(range(len(levels)), key=lambda place: abs(levels[place] - reward))
        counts[level][arm] += weight
        observations.append((arm, weight * reward, np.exp(feedback.log_prob[replica, row])))
    conditioned = []
    for row in counts:
        total = sum(row) + smoothing * size
        conditioned.append([(c + smoothing) / total if total else 1 / size for c in row])
    seen = sum(map(sum, counts))
    values = [sum(r * policy[a] / q for a, r, q in observations) / seen for policy in conditioned]
    return np.array(conditioned), np.array([sum(row) / seen for row in counts]), np.array(values)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_it_counts_as_a_slow_loop_does(problem, smoothing, seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 3, 40, seed)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=(3, 40))
    feedback = feedback._replace(weight=weight)
    estimator = Counting(smoothing)
    params = estimator.fit(estimator.init(problem, 3, rng), feedback, rng)
    context = np.zeros((3, 2, 0))
    belief = estimator.belief(params, context)
    found = belief.prob(problem.space.listing()[None, None])
    for replica in range(3):
        conditioned, prior, values = slow_counts(problem, feedback, smoothing, replica)
        assert np.allclose(found[replica], conditioned)
        assert np.allclose(belief.level_prior()[replica], prior)
        assert np.allclose(belief.values()[replica], values)


def test_propensities_missing_once_are_missing_for_good(seed):
    problem, rng = Problem(Arms(2)), np.random.default_rng(seed)
    feedback = some_feedback(problem, 1, 10, seed)._replace(reward=np.ones((1, 10)))
    estimator = Counting()
    params = estimator.init(problem, 1, rng)
    params = estimator.fit(params, feedback.rows(slice(0, 5))._replace(log_prob=None), rng)
    params = estimator.fit(params, feedback.rows(slice(5, 10)), rng)
    assert np.all(np.isnan(estimator.belief(params, np.zeros((1, 1, 0))).values()))


WIDTH = 3.0
FURTHEST = 12.0
ALLOWED = 6.5
"""Standard errors: exceeded once in ten thousand million comparisons."""


def objective(place, counts, other):
    """The Beta-binomial likelihood of the first level's constant, with the pull towards 1."""
    first, second = counts
    constant = np.exp(place)
    likelihood = betaln(first + constant, second + other) - betaln(constant, other)
    return float(likelihood.sum()) - place**2 / (2 * WIDTH**2)


def slow_constants(counts):
    """Constants of two levels, by looking everywhere and then nearby."""
    share = [np.sum([n[level] / n.sum() for n in counts.T if n.sum() > 0]) for level in (0, 1)]
    # Of equally rare levels the last stays at one.
    free = 0 if share[1] <= share[0] else 1
    ordered = counts if free == 0 else counts[::-1]
    grid = np.linspace(-FURTHEST, FURTHEST, 97)
    worth = [objective(place, ordered, 1.0) for place in grid]
    near = grid[int(np.argmax(worth))]
    best = minimize_scalar(
        lambda place: -objective(place, ordered, 1.0),
        bounds=(max(near - 0.25, -FURTHEST), min(near + 0.25, FURTHEST)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    constants = [1.0, 1.0]
    constants[free] = float(np.exp(best.x))
    return np.array(constants), free, ordered


whole = st.integers(0, 60).map(float)
parts = st.floats(0.0, 40.0)


@st.composite
def tallies(draw, number):
    arms = draw(st.integers(1, 8))
    row = st.lists(number, min_size=arms, max_size=arms)
    return np.array([draw(row), draw(row)])


@pytest.mark.parametrize("number", [whole, parts], ids=["whole", "parts"])
@given(data=st.data())
def test_the_constant_makes_the_counts_most_likely(number, data):
    counts = data.draw(tallies(number))
    found = fitted_smoothing(counts[None])[0]
    expected, free, ordered = slow_constants(counts)
    assert found[1 - free] == 1
    # Not the place but the height: a likelihood may be flat.
    reached = objective(np.log(found[free]), ordered, 1.0)
    assert reached >= objective(np.log(expected[free]), ordered, 1.0) - 1e-7


@pytest.mark.parametrize("chosen", ["evenly", "greedily"])
@pytest.mark.parametrize("beta", [2.0, 9.0, 40.0])
def test_it_finds_the_prior_the_arms_were_drawn_from(beta, chosen, seed):
    rng = np.random.default_rng((seed, int(beta)))
    values = rng.beta(1.0, beta, size=3000)
    first = rng.binomial(10, values)
    # How often an arm is pulled again may depend on what it gave.
    again = 10 + 40 * first if chosen == "greedily" else np.full(3000, 30)
    rewards = first + rng.binomial(again, values)
    counts = np.stack([10.0 + again - rewards, rewards])
    found = np.log(fitted_smoothing(counts[None])[0])
    assert found[1] == 0
    bend = np.diff([objective(np.log(beta) + h, counts, 1.0) for h in (-0.01, 0, 0.01)], n=2)
    error = 1 / np.sqrt(-bend.item() / 0.01**2)
    pulled = np.log(beta) / WIDTH**2 * error**2
    assert abs(found[0] - np.log(beta)) <= ALLOWED * error + pulled + 1e-3


@pytest.mark.parametrize("levels", [3, 5, 10])
def test_of_several_levels_the_rarest_gets_one_and_no_other_gains_alone(levels, seed):
    rng = np.random.default_rng((seed, levels))
    chances = rng.dirichlet(np.arange(1, levels + 1), size=60)
    counts = np.array([rng.multinomial(25, chance) for chance in chances]).T * 1.0
    found = fitted_smoothing(counts[None])[0]
    rarest = int(np.argmin((counts / 25).sum(axis=1)))
    assert found[rarest] == 1
    pulls = counts.sum(axis=0)

    def worth(constants):
        total = constants.sum()
        arms = gammaln(total) - gammaln(pulls + total)
        each = gammaln(counts + constants[:, None]) - gammaln(constants[:, None])
        return arms.sum() + each.sum() - np.sum(np.log(constants) ** 2) / (2 * WIDTH**2)

    assert worth(found) >= worth(np.ones(levels))
    # The level that was fitted last is where it is best, given the others.
    last = levels - 1 if rarest != levels - 1 else levels - 2
    for factor in (0.9, 0.99, 1.01, 1.1):
        moved = found.copy()
        moved[last] *= factor
        assert worth(moved) <= worth(found) + 1e-7


@pytest.mark.parametrize(
    "counts",
    [
        [[0, 0], [0, 0]],
        [[1e8, 1e8], [0, 0]],
        [[0, 0], [1e8, 1e8]],
        [[1e8, 0], [0, 1e8]],
        [[1e-300, 0], [0, 0]],
        [[1e-12, 1e8], [1e-12, 0]],
        [[1e8, 2], [0, 0], [0, 1]],
    ],
    ids=str,
)
def test_hostile_counts_have_constants_within_reason(counts):
    found = fitted_smoothing(np.array([counts], dtype=np.float64))[0]
    assert np.all(np.isfinite(found))
    assert np.all(np.abs(np.log(found)) <= FURTHEST + 1e-9)
    assert np.any(found == 1)


def test_every_rate_forgets_and_is_weighted_by_what_it_predicts(seed):
    """One row at a time on plain numbers, with rows that are absent in between."""
    problem, rng, estimator = Problem(Arms(3)), np.random.default_rng(seed), Counting(0.5, "fitted")
    feedback = some_feedback(problem, 1, 60, seed)
    feedback = feedback._replace(weight=rng.choice([0.0, 0.5, 1.0], size=(1, 60)))
    params = estimator.init(problem, 1, rng)
    counts, weights = np.zeros((len(RATES), 2, 3)), FIRST_WEIGHTS
    for row in range(60):
        params = estimator.fit(params, feedback.rows(slice(row, row + 1)), rng)
        arm, level = feedback.action[0, row, 0], int(feedback.reward[0, row])
        if (weight := feedback.weight[0, row]) == 0:
            continue
        for rate, kept in zip(RATES, counts, strict=True):
            kept /= 1 + rate * kept.sum(axis=0)
        likelihood = (counts[:, level, arm] + 0.5) / (counts[:, :, arm].sum(axis=1) + 1)
        weights = weights * likelihood**weight / np.sum(weights * likelihood**weight)
        weights = (1 - SWITCH_RATE) * weights + SWITCH_RATE * FIRST_WEIGHTS
        counts[:, level, arm] += weight
    assert np.allclose(params.memories.weights, weights)
    assert np.allclose(params.counts, np.einsum("m,mla->la", weights, counts))


def test_rows_that_are_predicted_together_have_the_likelihood_of_their_counts(seed):
    problem, rng, estimator = Problem(Arms(3)), np.random.default_rng(seed), Counting(2.0, "fitted")
    first, more = (some_feedback(problem, 2, 40, number) for number in (seed, seed + 1))
    params = estimator.fit(estimator.init(problem, 2, rng), first, rng)
    weights, before = params.memories.weights, params.memories.sums[:, :, :-1]
    before = before / (1 + 40 * RATES[:, None, None] * before.sum(axis=2, keepdims=True))
    found = estimator.fit(params, more, rng).memories
    after = found.sums[:, :, :-1]
    high, low = (betaln(*np.moveaxis(one + 2, 2, 0)).sum(axis=-1) for one in (after, before))
    expected = weights * np.exp(high - low) / np.sum(weights * np.exp(high - low), 1, keepdims=True)
    assert np.allclose(found.weights, expected, atol=2 * 40 * SWITCH_RATE)
