"""Spaces with numbers cut into cells, and policies that decide on them."""

import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax import Arms, Box, Continuous, Feedback, Mixed, Problem, Slots
from submax.estimators import Counting
from submax.policies import EpsilonGreedy, Gridded, RewardConditioned, Thompson
from submax.research.beyond.real_valued import Cells
from submax.strategies import LinearProgram, Optimized
from submax.testing.assertions import SMALLEST_P_VALUE
from submax.testing.problems import some_feedback

MIXED = Mixed((2,), (-1.0, 0.0), (1.0, 5.0))
POINTS = 3
CELLS = 2 * POINTS**2
VOLUME = (2 / POINTS) * (5 / POINTS)


def number_of_cell(action):
    """The cell of one action of ``MIXED``, the last part counting fastest."""
    choice, first, second = action
    row = min(int((first + 1.0) / (2 / POINTS)), POINTS - 1)
    column = min(int(second / (5 / POINTS)), POINTS - 1)
    return (int(choice) * POINTS + row) * POINTS + column


def taught(policy, problem, feedback, seed):
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, len(feedback.reward), rng), feedback, rng)


def slow_density(feedback, replica, action, epsilon):
    """ε-greedy over the mean reward of each cell, and uniform within it."""
    earned = {}
    for row in range(feedback.reward.shape[1]):
        cell = number_of_cell(feedback.action[replica, row])
        earned.setdefault(cell, []).append(feedback.reward[replica, row])
    means = [np.mean(earned[cell]) if cell in earned else 0.0 for cell in range(CELLS)]
    best = [cell for cell in range(CELLS) if np.isclose(means[cell], max(means), rtol=1e-12)]
    greedy = (number_of_cell(action) in best) / len(best)
    return (epsilon / CELLS + (1 - epsilon) * greedy) / VOLUME


@pytest.mark.parametrize("rows", [0, 3, 60])
def test_the_density_is_that_of_the_definition(rows, seed):
    problem = Problem(MIXED, scale=Continuous())
    policy = Gridded(EpsilonGreedy(0.3), points=POINTS)
    feedback = some_feedback(problem, 4, rows, seed)
    state = taught(policy, problem, feedback, seed)
    action = MIXED.uniform((4, 50), np.random.default_rng((seed, 1)))
    found = np.exp(policy.log_prob(state, np.zeros((4, 50, 0)), action))
    for replica, row in np.ndindex(4, 50):
        expected = slow_density(feedback, replica, action[replica, row], 0.3)
        assert found[replica, row] == pytest.approx(expected)


@pytest.mark.parametrize("space", [Arms(4), Slots((2, 3))], ids=repr)
@pytest.mark.parametrize("inner", [EpsilonGreedy(0.2), Thompson(), RewardConditioned()], ids=repr)
def test_on_a_finite_space_it_is_the_other_policy(space, inner, seed):
    problem, gridded = Problem(space), Gridded(inner, points=3)
    feedback = some_feedback(problem, 3, 40, seed)
    context = np.zeros((3, 20, 0))
    plain, cut = (taught(policy, problem, feedback, seed) for policy in (inner, gridded))
    decisions = [
        policy.act(state, context, np.random.default_rng((seed, 3)))
        for policy, state in ((inner, plain), (gridded, cut))
    ]
    assert np.array_equal(decisions[0].action, decisions[1].action)
    action = decisions[0].action
    assert np.array_equal(
        inner.log_prob(plain, context, action), gridded.log_prob(cut, context, action)
    )


@pytest.mark.parametrize("strategy", [Optimized(), LinearProgram()], ids=repr)
def test_propensities_reach_the_other_policy_as_those_of_cells(strategy, seed):
    rng, points = np.random.default_rng(seed), 4
    box = Box((0.0,), (20.0,))
    problem = Problem(box)
    action = box.uniform((2, 80), rng)
    cell = np.floor(action / 5.0).astype(np.int64)
    # The logging policy prefers some cells, and is uniform within each.
    logging = np.array([0.4, 0.3, 0.2, 0.1])
    density = logging[cell[..., 0]] / 5.0
    reward = (rng.random((2, 80)) < 0.5).astype(np.float64)
    feedback = Feedback(np.zeros((2, 80, 0)), action, reward, np.log(density), np.ones((2, 80)))
    policy = Gridded(RewardConditioned(Counting(), strategy), points=points)
    state = taught(policy, problem, feedback, seed)
    for replica in range(2):
        where, paid = cell[replica, :, 0], reward[replica]
        worth = [np.sum(paid[where == one]) / logging[one] / 80 for one in range(points)]
        for level in (0, 1):
            count = [1 + np.sum(where[paid == level] == one) for one in range(points)]
            expected = np.dot(count, worth) / np.sum(count)
            assert state.inner.values[replica, level] == pytest.approx(expected)


def test_an_action_that_is_not_in_the_space_is_refused(seed):
    problem, policy = Problem(Box((0.0,), (1.0,))), Gridded()
    state = policy.init(problem, 1, np.random.default_rng(seed))
    with raises_code("invalid-input"):
        policy.log_prob(state, np.zeros((1, 1, 0)), np.array([[[1.5]]]))


WIDE = Box((0.1, -5.0), (0.7, 30.0))
SPACES = [Box((0.0,), (1.0,)), WIDE, Mixed((3, 2), (-0.3,), (0.9,)), Arms(4), Slots((2, 3))]


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("points", [1, 3, 10])
def test_cells_divide_the_space(space, points, seed):
    cells = Cells(space, points)
    every = np.repeat(cells.listed.listing()[:, None], 200, axis=1)
    action = cells.within(every, np.random.default_rng(seed))
    assert space.contains(action)
    assert np.array_equal(cells.of(action), every)
    assert cells.log_volume + np.log(cells.listed.size) == pytest.approx(space.log_measure)


def test_the_cell_of_each_action_by_hand():
    cells = Cells(Mixed((3,), (-1.0,), (1.0,)), 4)
    action = np.array([[2, -1.0], [0, -0.51], [0, -0.5], [1, 0.49], [1, 0.5], [2, 1.0]])
    assert cells.of(action).tolist() == [[2, 0], [0, 0], [0, 1], [1, 2], [1, 3], [2, 3]]
    assert cells.centers()[[0, -1]].tolist() == [[0, 0.125], [2, 0.875]]
    strangers = np.array([[0, -3.0], [0, 7.0], [0, np.nan], [0, np.inf], [0, -np.inf]])
    assert cells.listed.contains(cells.of(strangers))


def test_points_within_a_cell_are_uniform(seed):
    drawn = Cells(WIDE, 5).within(np.tile([2, 4], (4000, 1)), np.random.default_rng(seed))
    for dimension, (low, width) in enumerate([(0.1 + 2 * 0.12, 0.12), (-5.0 + 4 * 7, 7.0)]):
        fit = stats.kstest(drawn[:, dimension], stats.uniform(low, width).cdf)
        assert fit.pvalue > SMALLEST_P_VALUE
    assert stats.pearsonr(*drawn.T).pvalue > SMALLEST_P_VALUE
