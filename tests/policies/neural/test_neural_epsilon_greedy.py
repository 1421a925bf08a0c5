import numpy as np
import pytest
from refusals import raises_code

from submax.policies.neural.neural_epsilon_greedy import NeuralEpsilonGreedy
from submax.testing.rules.examples import some_contexts

pytestmark = pytest.mark.xdist_group("ValueBelief")


@pytest.fixture
def policy(training):
    return NeuralEpsilonGreedy(0.3, hidden=8, dropout=0.0, training=training)


@pytest.fixture(scope="module")
def state(learned, training):
    return learned(NeuralEpsilonGreedy(0.3, hidden=8, dropout=0.0, training=training))


def test_the_highest_value_has_all_but_epsilon(policy, state, problem, value, seed):
    context = some_contexts(problem, 4, 6, seed)
    found = policy.probabilities(state, context)
    for replica, row in np.ndindex(4, 6):
        values = [value(state.network, replica, context[replica, row], arm) for arm in range(3)]
        expected = np.full(3, 0.1)
        expected[np.argmax(values)] += 0.7
        assert np.allclose(found[replica, row], expected)


def test_before_the_first_feedback_it_is_uniform(policy, problem, seed):
    rng = np.random.default_rng(seed)
    found = policy.probabilities(policy.init(problem, 4, rng), some_contexts(problem, 4, 6, seed))
    assert np.allclose(found, 1 / 3)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_it_learns_which_arm_suits_which_context(epsilon, state, training, earned):
    policy = NeuralEpsilonGreedy(epsilon, hidden=8, dropout=0.0, training=training)
    # 2000 decisions: five standard errors around a third are 0.053.
    if epsilon == 0:
        assert earned(policy, state) > 0.7
    else:
        assert abs(earned(policy, state) - 1 / 3) < 0.06


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", 1.5), ("epsilon", float("nan")), ("hidden", 0), ("dropout", -0.1)],
)
def test_bad_parameters_are_refused(name, value):
    with raises_code("invalid-input"):
        NeuralEpsilonGreedy(**{name: value})
