import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.policies.linear import linear_thompson
from submax.policies.linear.linear_thompson import LinearThompson
from submax.policies.neural.largest_normal import largest_normal
from submax.testing.rules.examples import some_contexts, some_feedback
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

PROBLEM = Problem(Arms(3), context_width=2)


def taught(policy, problem, seed, replicas=1):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, replicas, 60, seed)
    return policy.update(policy.init(problem, replicas, rng), feedback, rng)


@pytest.mark.parametrize("width", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("problem", [PROBLEM, Problem(Arms(5))], ids=["context", "no context"])
def test_shares_of_draws_are_the_chances_to_be_the_largest(problem, width, seed):
    # The scores of independent regressions are independent normals: their chances are known.
    policy = LinearThompson(width=width, draws=4096)
    state = taught(policy, problem, seed)
    context = some_contexts(problem, 1, 1, seed)
    (belief,) = state.beliefs
    posterior = belief.posterior(state.settings(policy.draws, width))
    features = belief.feature_map.rows(context[0])
    deviation = width * np.sqrt(posterior.variance(features)[0])
    expected = largest_normal(features[0] @ posterior.coefficients.T, deviation)
    found = policy.probabilities(state, context)[0, 0]
    drawn = np.repeat(np.arange(problem.space.size), np.rint(found * 4096).astype(int))
    assert drawn.size == 4096
    assert goodness_of_fit(drawn, expected) > SMALLEST_P_VALUE


@pytest.mark.parametrize("problem", [PROBLEM, Problem(Arms(5))], ids=["context", "no context"])
def test_choices_follow_their_probabilities(problem, seed):
    policy = LinearThompson()
    state = taught(policy, problem, seed)
    context = np.repeat(some_contexts(problem, 1, 1, seed), 2000, axis=1)
    decision = policy.act(state, context, np.random.default_rng(seed))
    (probabilities,) = policy.probabilities(state, context[:, :1])[0]
    assert goodness_of_fit(decision.action.ravel(), probabilities) > SMALLEST_P_VALUE
    expected = np.log(probabilities[decision.action[..., 0]])
    np.testing.assert_array_equal(decision.log_prob, expected)


def test_one_decision_has_the_probability_of_many(seed):
    policy, rng = LinearThompson(), np.random.default_rng(seed)
    state = taught(policy, PROBLEM, seed)
    context = some_contexts(PROBLEM, 1, 1, seed)
    decision = policy.act(state, context, rng)
    np.testing.assert_allclose(decision.log_prob, policy.log_prob(state, context, decision.action))


def test_blocks_of_rows_change_nothing(seed, monkeypatch):
    policy = LinearThompson()
    state = taught(policy, PROBLEM, seed, replicas=2)
    context = some_contexts(PROBLEM, 2, 50, seed)
    whole = policy.probabilities(state, context)
    monkeypatch.setattr(linear_thompson, "SCORES_AT_ONCE", 700)
    np.testing.assert_array_equal(policy.probabilities(state, context), whole)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_bad_width_is_refused(value):
    with raises_code("invalid-input", "width"):
        LinearThompson(width=value)


@pytest.mark.parametrize("value", [0, 4097, 1.5, None])
def test_a_bad_number_of_draws_is_refused(value):
    with raises_code("invalid-input", "draws"):
        LinearThompson(draws=value)
