import jax
import numpy as np
import pytest

from submax.policies.neural.gradient_belief import GradientBelief
from submax.policies.neural.neural_ucb import NeuralUCB
from submax.testing.rules.examples import some_contexts

pytestmark = pytest.mark.xdist_group("ValueBelief")


@pytest.fixture(scope="module")
def state(learned, training):
    return learned(NeuralUCB(ridge=0.7, hidden=8, training=training))


def logit(arrays, context, arm):
    choice, given, first_bias, second_weight, second_bias, head, head_bias = arrays
    first = jax.nn.relu(choice[arm] + context @ given + first_bias)
    return jax.nn.relu(first @ second_weight + second_bias) @ head + head_bias


@jax.jit
def squares(networks, contexts, arms):
    """Squared gradients, all of them written out: ``[R, n, ...]`` for each array of the network."""
    rows = jax.vmap(jax.grad(logit), in_axes=(None, 0, 0))
    return [one**2 for one in jax.vmap(rows)(networks, contexts, arms)]


def test_scores_are_those_of_gradients_written_out(state, problem, value, seed):
    network, buffer = state.belief.network, state.belief.buffer
    # As many rows as were observed, so that one program serves both.
    context = some_contexts(problem, 4, buffer.reward.shape[1], seed).astype(np.float32)
    found, deviation = state.scores(context)
    seen = squares(list(network), buffer.context, buffer.action[..., 0])
    diagonal = [0.7 + np.asarray(one).sum(axis=1) for one in seen]
    for kept, expected in zip(state.precision, diagonal, strict=True):
        assert np.allclose(kept, expected, rtol=1e-3)
    for arm in range(3):
        new = squares(list(network), context, np.full(buffer.action.shape[:2], arm, dtype=np.int32))
        variance = sum(
            (np.asarray(one) / precision[:, None]).reshape(*context.shape[:2], -1).sum(axis=-1)
            for one, precision in zip(new, diagonal, strict=True)
        )
        assert np.allclose(deviation[..., arm], np.sqrt(variance), rtol=1e-3)
        for replica in range(4):
            values = [value(network, replica, row, arm) for row in context[replica, :5]]
            assert np.allclose(found[replica, :5, arm], values, rtol=1e-3, atol=1e-4)


def test_before_the_first_feedback_all_scores_are_equal(problem, seed):
    belief = GradientBelief.empty(problem, 4, 8, 2.0)
    found, deviation = belief.scores(some_contexts(problem, 4, 5, seed))
    assert np.all(found == 0)
    # All slopes are 0 but that of the last bias, which is 1.
    assert np.allclose(deviation, np.sqrt(1 / 2.0))
