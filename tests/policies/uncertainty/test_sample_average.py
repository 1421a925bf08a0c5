import numpy as np
import pytest
from refusals import raises_code

from submax.policies.uncertainty.sample_average_sampling import SampleAverageSampling
from submax.policies.uncertainty.sample_average_ucb import SampleAverageUCB
from submax.testing.rules.examples import some_contexts, some_feedback

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
    assert np.all(state.counts.sum(axis=1) == np.where(np.arange(4) == 2, 204, 209))


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


def test_an_action_is_less_uncertain_the_more_often_it_was_observed(problem, training, seed):
    policy, rng = SampleAverageUCB(hidden=8, training=training), np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 40, seed)
    action = np.where(np.arange(40) < 35, 0, 1)[None, :, None] + np.zeros((4, 1, 1), dtype=np.int64)
    state = policy.update(policy.init(problem, 4, rng), feedback._replace(action=action), rng)
    error = state.scores(some_contexts(problem, 4, 1, seed))[1][:, 0]
    assert np.all(error[:, 0] < error[:, 1])
    assert np.all(error[:, 1] < error[:, 2])


def test_before_the_first_feedback_it_is_uniform(problem, seed):
    context = some_contexts(problem, 4, 6, seed)
    for policy in (SampleAverageUCB(hidden=8), SampleAverageSampling(hidden=8)):
        state = policy.init(problem, 4, np.random.default_rng(seed))
        assert np.allclose(policy.probabilities(state, context), 1 / 3)


@pytest.mark.parametrize("kind", [SampleAverageUCB, SampleAverageSampling])
def test_it_learns_which_arm_suits_which_context(kind, before, earned):
    assert earned(kind(hidden=8), before) > 0.7


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (SampleAverageUCB, "width"),
        (SampleAverageSampling, "scale"),
        (SampleAverageUCB, "hidden"),
        (SampleAverageSampling, "dropout"),
    ],
)
def test_bad_parameters_are_refused(kind, name):
    with raises_code("invalid-input"):
        kind(**{name: -1})
