"""Value networks with an estimate of their own error."""

import numpy as np
import pytest

from submax import Feedback
from submax.policies import SampleAverageSampling, SampleAverageUCB, VarianceNetworkUCB
from submax.testing.problems import some_contexts, some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")


@pytest.fixture(scope="module")
def before(learned, training):
    return learned(SampleAverageUCB(hidden=8, training=training))


@pytest.fixture(scope="module")
def state(before, problem, training, seed):
    feedback = some_feedback(problem, 4, 9, seed)
    feedback.weight[2, 4:] = 0.0
    return SampleAverageUCB(hidden=8, training=training).update(
        before, feedback, np.random.default_rng(seed)
    )


def test_squares_are_those_of_the_network_before_the_update(before, state, problem, value, seed):
    """Recompute S_a and n_a row by row, with the network from before the rows were learned."""
    feedback = some_feedback(problem, 4, 9, seed)
    squares, counts = before.squares.copy(), before.counts.copy()
    for replica, row in np.ndindex(4, 4):
        arm = feedback.action[replica, row, 0]
        context = feedback.context[replica, row]
        predicted = 1 / (1 + np.exp(-value(before.belief.network, replica, context, arm)))
        squares[replica, arm] += (feedback.reward[replica, row] - predicted) ** 2
        counts[replica, arm] += 1
    np.testing.assert_allclose(state.counts[2], counts[2])
    np.testing.assert_allclose(state.squares[2], squares[2], rtol=1e-5)
    assert np.all(state.counts.sum(axis=1) == np.where(np.arange(4) == 2, 404, 409))


@pytest.mark.parametrize("width", [0.0, 1.0, 50.0])
def test_the_highest_bound_is_taken(width, state, problem, value, seed):
    context = some_contexts(problem, 4, 20, seed)
    found = SampleAverageUCB(width=width, hidden=8).probabilities(state, context)
    for replica, row in np.ndindex(4, 20):
        bounds = []
        for arm in range(3):
            logit = value(state.belief.network, replica, context[replica, row], arm)
            count = state.counts[replica, arm]
            variance = state.squares[replica, arm] / count
            total = state.counts[replica].sum()
            bounds.append(
                1 / (1 + np.exp(-logit)) + width * np.sqrt(variance * np.log(total) / count)
            )
        assert found[replica, row, np.argmax(bounds)] == pytest.approx(1.0)


def test_sampling_is_the_chance_that_a_normal_draw_is_the_largest(state, problem, seed):
    """Compare the quadrature with many draws; the tolerance is six standard errors."""
    context = some_contexts(problem, 4, 2, seed)
    policy = SampleAverageSampling(hidden=8, scale=3.0)
    found = policy.probabilities(state, context)
    mean = state.belief.values(context)
    deviation = 3.0 * np.sqrt(state.squares) / state.counts
    draws = 20_000
    rng = np.random.default_rng(seed)
    drawn = mean[..., None] + deviation[:, None, :, None] * rng.normal(size=(4, 2, 3, draws))
    share = np.stack([(drawn.argmax(axis=2) == arm).mean(axis=-1) for arm in range(3)], axis=-1)
    assert np.all(np.abs(share - found) <= 6 * np.sqrt(found * (1 - found) / draws) + 1e-4)


@pytest.fixture(scope="module")
def noisy(problem, training, seed):
    """Return a belief about arms that pay by a coin if the first number of the context is 1.

    If the first number of the context is −1, all arms pay nothing.
    """
    rng = np.random.default_rng((seed, 7))
    context = rng.choice([-1.0, 1.0], size=(4, 600, 2))
    action = rng.integers(3, size=(4, 600, 1))
    reward = ((context[..., 0] > 0) & (rng.random((4, 600)) < 0.5)).astype(float)
    policy = VarianceNetworkUCB(hidden=8, training=training)
    feedback = Feedback(context, action, reward, None, np.ones(reward.shape))
    return policy.update(policy.init(problem, 4, rng), feedback, rng)


def test_the_second_network_predicts_the_variance(noisy):
    """The variance of a coin is 1/4, that of a constant is 0."""
    context = np.array([[[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]]).repeat(4, axis=0)
    deviation = noisy.scores(context)[1]
    # About 50 rows in each of 12 cells have a standard error of the variance below 0.01, and the
    # last steps of training add as much; 0.5 and 0 are the truth.
    assert np.abs(deviation[:, :2] - 0.5).max() < 0.15
    assert deviation[:, 2:].max() < 0.3


@pytest.mark.parametrize("width", [0.0, 0.3, 20.0])
def test_the_highest_bound_with_a_predicted_variance_is_taken(width, noisy, problem, value, seed):
    context = some_contexts(problem, 4, 20, seed)
    found = VarianceNetworkUCB(width=width, hidden=8).probabilities(noisy, context)

    def predicted(belief, replica, row, arm):
        logit = value(belief.network, replica, context[replica, row], arm)
        return 1 / (1 + np.exp(-float(logit)))

    for replica, row in np.ndindex(4, 20):
        place = (replica, row)
        bounds = [
            predicted(noisy.mean, *place, arm)
            + width * np.sqrt(predicted(noisy.variance, *place, arm))
            for arm in range(3)
        ]
        # Bounds that differ by rounding may be ordered either way.
        assert bounds[int(found[place].argmax())] == pytest.approx(max(bounds), abs=1e-5)
