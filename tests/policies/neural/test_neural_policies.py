"""Decisions of value networks, recomputed one action at a time."""

import jax
import numpy as np
import pytest

from submax.policies import DropoutThompson, NeuralEpsilonGreedy, NeuralThompson, NeuralUCB
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.problems import some_contexts

pytestmark = pytest.mark.xdist_group("ValueBelief")


def test_the_highest_value_has_all_but_epsilon(learned, training, problem, value, seed):
    policy = NeuralEpsilonGreedy(0.3, hidden=8, dropout=0.0, training=training)
    state, context = learned(policy), some_contexts(problem, 4, 6, seed)
    found = policy.probabilities(state, context)
    for replica, row in np.ndindex(4, 6):
        values = [value(state.network, replica, context[replica, row], arm) for arm in range(3)]
        expected = np.full(3, 0.1)
        expected[np.argmax(values)] += 0.7
        assert np.allclose(found[replica, row], expected)


@pytest.fixture(scope="module")
def ucb_state(learned, training):
    return learned(NeuralUCB(hidden=8, training=training))


@pytest.mark.parametrize("width", [0.0, 0.1, 100.0])
def test_the_highest_bound_is_taken(width, ucb_state, problem, seed):
    context = some_contexts(problem, 4, 30, seed)
    logit, deviation = ucb_state.scores(context)
    found = NeuralUCB(width, hidden=8).probabilities(ucb_state, context)
    for replica, row in np.ndindex(4, 30):
        bounds = [
            logit[replica, row, arm] + width * deviation[replica, row, arm] for arm in (0, 1, 2)
        ]
        assert found[replica, row, np.argmax(bounds)] == pytest.approx(
            1 / bounds.count(max(bounds))
        )


def test_the_probability_is_that_of_drawn_values(learned, training, problem, table, seed):
    policy = NeuralThompson(2.0, hidden=8, training=training)
    state, context = learned(policy), some_contexts(problem, 4, 1, seed)
    probabilities = table(policy, state, context)
    logit, deviation = state.scores(context)
    noise = np.random.default_rng((seed, 10)).normal(size=(4, 3000, 3))
    drawn = (logit + 2.0 * deviation * noise).argmax(axis=-1)
    for replica in range(4):
        fit = goodness_of_fit(drawn[replica], probabilities[replica, 0])
        assert fit > SMALLEST_P_VALUE


def logit(arrays, context, arm):
    choice, given, first_bias, second_weight, second_bias, head, head_bias = arrays
    first = jax.nn.relu(choice[arm] + context @ given + first_bias)
    return jax.nn.relu(first @ second_weight + second_bias) @ head + head_bias


@jax.jit
def squares(networks, contexts, arms):
    """Squared gradients, all of them written out: ``[R, n, ...]`` for each array of the network."""
    rows = jax.vmap(jax.grad(logit), in_axes=(None, 0, 0))
    return [one**2 for one in jax.vmap(rows)(networks, contexts, arms)]


def test_scores_are_those_of_gradients_written_out(learned, training, problem, value, seed):
    policy = NeuralUCB(ridge=0.7, hidden=8, training=training)
    fresh = policy.init(problem, 4, np.random.default_rng(seed))
    found, deviation = fresh.scores(some_contexts(problem, 4, 5, seed))
    assert np.all(found == 0)
    # All slopes are 0 but that of the last bias, which is 1.
    assert np.allclose(deviation, np.sqrt(1 / 0.7))
    state = learned(policy)
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


def test_the_probability_is_the_share_of_masks(learned, training, problem, table, value, seed):
    policy = DropoutThompson(0.3, masks=40, hidden=8, training=training)
    state, context = learned(policy), some_contexts(problem, 4, 3, seed)
    # 4 × 40 × 8 units, each kept with chance 0.7.
    assert abs(np.mean(state.first > 0) - 0.7) < 6 * np.sqrt(0.21 / state.first.size)
    found = table(policy, state, context)
    for replica, row in np.ndindex(4, 3):
        expected = np.zeros(3)
        for mask in range(40):
            masks = state.first[replica, mask], state.second[replica, mask]
            values = np.array(
                [
                    value(state.belief.network, replica, context[replica, row], arm, *masks)
                    for arm in range(3)
                ]
            )
            best = np.isclose(values, values.max(), rtol=1e-6, atol=1e-6)
            expected += best / best.sum() / 40
        assert np.allclose(found[replica, row], expected)
