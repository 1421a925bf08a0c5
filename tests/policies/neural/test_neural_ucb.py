import numpy as np
import pytest
from refusals import raises_code

from submax.policies.neural.neural_ucb import NeuralUCB
from submax.testing.rules.examples import some_contexts

pytestmark = pytest.mark.xdist_group("ValueBelief")


@pytest.fixture(scope="module")
def state(learned, training):
    return learned(NeuralUCB(hidden=8, training=training))


@pytest.mark.parametrize("width", [0.0, 0.1, 100.0])
def test_the_highest_bound_is_taken(width, state, problem, seed):
    context = some_contexts(problem, 4, 30, seed)
    logit, deviation = state.scores(context)
    found = NeuralUCB(width, hidden=8).probabilities(state, context)
    for replica, row in np.ndindex(4, 30):
        bounds = [
            logit[replica, row, arm] + width * deviation[replica, row, arm] for arm in (0, 1, 2)
        ]
        assert found[replica, row, np.argmax(bounds)] == pytest.approx(
            1 / bounds.count(max(bounds))
        )


def test_without_width_it_is_greedy_and_with_much_it_is_not(state, problem, seed):
    context = some_contexts(problem, 4, 200, seed)
    greedy = state.belief.logits(context).argmax(axis=-1)
    timid, bold = (NeuralUCB(width, hidden=8).probabilities(state, context) for width in (0, 1e6))
    assert np.array_equal(timid.argmax(axis=-1), greedy)
    widest = state.scores(context)[1].argmax(axis=-1)
    assert np.mean(bold.argmax(axis=-1) == widest) > 0.99


def test_before_the_first_feedback_it_is_uniform(problem, seed):
    policy = NeuralUCB(hidden=8)
    state = policy.init(problem, 4, np.random.default_rng(seed))
    assert np.allclose(policy.probabilities(state, some_contexts(problem, 4, 6, seed)), 1 / 3)


def test_it_learns_which_arm_suits_which_context(state, earned):
    assert earned(NeuralUCB(hidden=8), state) > 0.7


@pytest.mark.parametrize(("name", "value"), [("width", -0.1), ("ridge", 0), ("hidden", 0)])
def test_bad_parameters_are_refused(name, value):
    with raises_code("invalid-input"):
        NeuralUCB(**{name: value})
