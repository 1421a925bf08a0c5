import numpy as np
import pytest

from submax import (
    Arms,
    Box,
    Continuous,
    Counts,
    Discrete,
    Feedback,
    Problem,
    StrategyRequirements,
    Training,
)
from submax.core.errors import counted_fallbacks, fall_back
from submax.estimators import CVAE, Counting
from submax.policies import RewardConditioned
from submax.research.beyond.linear_program import UnsolvedWarning
from submax.strategies import Advantage, Clipped, LinearProgram, Optimistic, SubMax
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

NETWORK = CVAE(hidden=4, latent=2, draws=2, training=Training(steps=6, batch=8))
SCALES = [Continuous(), Counts(), Discrete((0.0, 1.0, 2.0))]


def all_equal(problem, rows, rng):
    shape = (2, rows)
    action = problem.space.uniform(shape, rng)
    log_prob = np.full(shape, -problem.space.log_measure)
    context = np.zeros((*shape, problem.context_width))
    return Feedback(context, action, np.ones(shape), log_prob, np.ones(shape))


@pytest.mark.parametrize("scale", SCALES, ids=repr)
@pytest.mark.parametrize("max_enumerated_actions", [1, 4096])
@pytest.mark.parametrize("strategy", [SubMax(), Advantage(), Clipped(), LinearProgram()], ids=repr)
def test_where_all_rewards_are_equal_choice_is_uniform(
    strategy, max_enumerated_actions, scale, seed
):
    rng = np.random.default_rng(seed)
    policy = RewardConditioned(Counting(), strategy, max_enumerated_actions)
    problem = Problem(Arms(3), scale=scale)
    state = policy.init(problem, 2, rng)
    state = policy.update(state, all_equal(problem, 40, rng), rng)
    with counted_fallbacks() as counts:
        action = policy.act(state, np.zeros((2, 600, 0)), rng).action
    assert counts == []
    for replica in range(2):
        fit = goodness_of_fit(action[replica, :, 0], np.full(3, 1 / 3))
        assert fit > SMALLEST_P_VALUE


@pytest.mark.xdist_group("CVAE")
@pytest.mark.parametrize("strategy", [SubMax(), Advantage()], ids=repr)
def test_the_same_with_a_network_over_numbers(strategy, seed):
    rng = np.random.default_rng(seed)
    policy = RewardConditioned(NETWORK, strategy)
    problem = Problem(Box((0.0,), (4.0,)), context_width=1, scale=Continuous())
    state = policy.init(problem, 2, rng)
    state = policy.update(state, all_equal(problem, 40, rng), rng)
    context = rng.normal(size=(2, 300, 1))
    with counted_fallbacks() as counts:
        action = policy.act(state, context, rng).action
    assert counts == []
    assert goodness_of_fit(action[..., 0].astype(np.int64), np.full(4, 0.25)) > SMALLEST_P_VALUE
    found = policy.density(state, context, action)
    assert np.array_equal(found.log_prob, np.full((2, 300), -np.log(4.0)))
    assert not found.known.any()


class NeverSolved(Optimistic):
    """As a linear program that has no solution."""

    facts = StrategyRequirements(needs_listing=True)

    def weights(self, table):
        fall_back(UnsolvedWarning, "no solution", int(np.prod(table.prior.shape[:-1])))
        return Optimistic.weights(self, table)


@pytest.mark.parametrize("width", [0, 2])
def test_every_decision_of_an_unsolved_program_counts(width, seed):
    rng = np.random.default_rng(seed)
    policy = RewardConditioned(Counting(), NeverSolved())
    state = policy.init(Problem(Arms(3), context_width=width), 2, rng)
    with counted_fallbacks() as counts:
        policy.act(state, np.zeros((2, 70, width)), rng)
    assert sum(counts) == 2 * 70
