import numpy as np
import pytest
from refusals import raises_code

from submax.policies.neural.neural_thompson import NeuralThompson
from submax.testing.rules.examples import some_contexts
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

pytestmark = pytest.mark.xdist_group("ValueBelief")


@pytest.fixture(scope="module")
def state(learned, training):
    return learned(NeuralThompson(hidden=8, training=training))


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_decisions_follow_their_probabilities(scale, state, problem, table, seed):
    policy = NeuralThompson(scale, hidden=8)
    context = some_contexts(problem, 4, 1, seed)
    probabilities = table(policy, state, context)
    assert np.allclose(probabilities.sum(axis=-1), 1, atol=1e-6)
    decision = policy.act(state, np.repeat(context, 3000, axis=1), np.random.default_rng((seed, 9)))
    for replica in range(4):
        drawn, expected = decision.action[replica], probabilities[replica, 0]
        assert goodness_of_fit(drawn, expected) > SMALLEST_P_VALUE


def test_the_probability_is_that_of_drawn_values(state, problem, table, seed):
    context = some_contexts(problem, 4, 1, seed)
    probabilities = table(NeuralThompson(2.0, hidden=8), state, context)
    logit, deviation = state.scores(context)
    noise = np.random.default_rng((seed, 10)).normal(size=(4, 3000, 3))
    drawn = (logit + 2.0 * deviation * noise).argmax(axis=-1)
    for replica in range(4):
        fit = goodness_of_fit(drawn[replica], probabilities[replica, 0])
        assert fit > SMALLEST_P_VALUE


def test_without_scale_it_is_greedy(state, problem, table, seed):
    policy, context = NeuralThompson(0.0, hidden=8), some_contexts(problem, 4, 50, seed)
    logits = state.belief.logits(context)
    best = logits == logits.max(axis=-1, keepdims=True)
    assert np.allclose(table(policy, state, context), best / best.sum(axis=-1, keepdims=True))
    taken = policy.act(state, context, np.random.default_rng(seed)).action
    assert np.all(np.take_along_axis(best, taken, axis=-1))


def test_before_the_first_feedback_it_is_uniform(problem, table, seed):
    policy, rng = NeuralThompson(hidden=8), np.random.default_rng(seed)
    state = policy.init(problem, 4, rng)
    context = some_contexts(problem, 4, 1000, seed)
    assert np.allclose(table(policy, state, context[:, :2]), 1 / 3)
    drawn = policy.act(state, context, rng).action
    assert goodness_of_fit(drawn, np.full(3, 1 / 3)) > SMALLEST_P_VALUE


def test_it_learns_which_arm_suits_which_context(state, earned):
    assert earned(NeuralThompson(hidden=8), state) > 0.7


@pytest.mark.parametrize(("name", "value"), [("scale", -0.1), ("ridge", 0), ("hidden", 0)])
def test_bad_parameters_are_refused(name, value):
    with raises_code("invalid-input"):
        NeuralThompson(**{name: value})
