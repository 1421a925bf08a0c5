import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.feedback import Feedback
from submax.policies.uncertainty.variance_network_ucb import VarianceNetworkUCB
from submax.testing.rules.examples import some_contexts

pytestmark = pytest.mark.xdist_group("ValueBelief")


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
def test_the_highest_bound_is_taken(width, noisy, problem, value, seed):
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


def test_before_the_first_feedback_it_is_uniform(problem, seed):
    policy = VarianceNetworkUCB(hidden=8)
    state = policy.init(problem, 4, np.random.default_rng(seed))
    assert np.allclose(policy.probabilities(state, some_contexts(problem, 4, 6, seed)), 1 / 3)


@pytest.mark.parametrize("name", ["width", "hidden", "dropout"])
def test_bad_parameters_are_refused(name):
    with raises_code("invalid-input"):
        VarianceNetworkUCB(**{name: -1})
