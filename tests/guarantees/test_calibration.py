import numpy as np
import pytest
from observations import observed, taught

from submax.environments.arms import Bernoulli
from submax.policies.thompson import Thompson
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

REPLICAS, ARMS, ROWS = 2000, 5, 30


def p_value_of_calibration(environment, policy, seed):
    """Whether the best arm is where π says: worlds from the prior, data from the worlds.

    π(a) is the posterior chance that a is best, so that the arm of rank k in π is best as often
    as the average of the k-th largest π. The chances differ by replica, which only makes the
    test more careful.
    """
    rng = np.random.default_rng(seed)
    world = environment.reset(REPLICAS, rng)
    context = environment.contexts(world, ROWS, rng)
    action = rng.integers(ARMS, size=(REPLICAS, ROWS, 1))
    reward = environment.reward(world, context, action, rng)
    state = taught(policy, environment.problem, observed(action, reward, context), seed)
    probabilities = policy.probabilities(state, context)[:, 0]
    ranked = np.argsort(-probabilities, axis=1, kind="stable")
    rank_of_best = np.argmax(ranked == world.argmax(axis=1)[:, None], axis=1)
    share_of_rank = np.take_along_axis(probabilities, ranked, axis=1).mean(axis=0)
    return goodness_of_fit(rank_of_best, share_of_rank)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.0, 9.0), (0.5, 0.5)])
def test_with_the_true_prior_an_arm_is_best_as_often_as_thompson_takes_it(alpha, beta, seed):
    environment, policy = Bernoulli(ARMS, alpha, beta), Thompson(alpha, beta)
    assert p_value_of_calibration(environment, policy, seed) > SMALLEST_P_VALUE


def test_with_a_wrong_prior_it_is_not(seed):
    environment, policy = Bernoulli(ARMS, 1.0, 1.0), Thompson(50.0, 50.0)
    assert p_value_of_calibration(environment, policy, seed) < SMALLEST_P_VALUE
