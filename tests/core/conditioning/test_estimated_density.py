import numpy as np
import pytest
from scipy import integrate, stats

from submax.core.conditioning import ConditionalDistribution, estimated_density

WEIGHTS = {
    "submax": (-1.0, 1.0),
    "clipped": (-2.0, 3.0),
    "two positive": (0.3, 0.7),
    "one alone": (0.0, 1.0),
    "three levels": (-0.6, 0.5, 1.1),
    "three levels, the middle taken away": (1.0, -1.5, 1.0),
}


class Betas(ConditionalDistribution):
    """Beta densities over 0 to 1 with ``shape [R, n, L, 2]``."""

    def __init__(self, shape):
        self.shape = shape

    def prob(self, action):
        first, second = np.moveaxis(self.shape[:, :, :, None], -1, 0)
        return stats.beta.pdf(action[:, :, None, :, 0], first, second)

    def sample(self, level, count, rng):
        first, second = np.moveaxis(self.shape[:, :, level, None], -1, 0)
        return rng.beta(first, second, size=(*self.shape.shape[:2], count))[..., None]

    def rows(self, row):
        return Betas(np.take_along_axis(self.shape, row[..., None, None], axis=1))


def some_betas(replicas, rows, levels, rng):
    return Betas(rng.uniform(2.0, 6.0, size=(replicas, rows, levels, 2)))


def exact(weights, shape, place):
    """The logarithm of max(Σ w_l π_l(a), 0) over its integral, for one row."""

    def mass(x):
        parts = [w * stats.beta.pdf(x, *one) for w, one in zip(weights, shape, strict=True)]
        return np.maximum(sum(parts), 0.0)

    grid = np.linspace(0, 1, 10001)
    with np.errstate(divide="ignore"):
        return np.log(mass(place)) - np.log(integrate.trapezoid(mass(grid), grid))


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_it_is_near_the_integral_and_says_how_near(weights, seed):
    rng = np.random.default_rng((seed, len(weights)))
    replicas, rows = 2, 25
    belief = some_betas(replicas, rows, len(weights), rng)
    given = np.broadcast_to(weights, (replicas, rows, len(weights)))
    action = rng.random((replicas, rows, 5, 1))
    found = estimated_density(given, belief, action)
    assert found.known.all()
    score = []
    for replica, row in np.ndindex(replicas, rows):
        truth = exact(weights, belief.shape[replica, row], action[replica, row, :, 0])
        log_prob, error = found.log_prob[replica, row], found.error[replica, row]
        possible = np.isfinite(truth)
        assert np.array_equal(np.isneginf(log_prob), ~possible)
        # All actions of a row have one constant. The grid is right to far below 1e-6.
        difference = log_prob[possible] - truth[possible]
        assert np.all(np.abs(difference) <= 7 * error + 1e-6)
        if possible.any() and error > 0:
            score.append(difference[0] / error)
    if min(weights) >= 0:
        assert not found.error.any()
        return
    # The square of a standard normal has variance 2.
    assert len(score) > 10
    spread = np.mean(np.square(score))
    assert abs(spread - 1) < 7 * np.sqrt(2 / len(score))


def test_the_error_is_honest_over_many_cases(seed):
    """Each row has draws of its own: standardized differences have mean 0 and variance 1."""
    rng = np.random.default_rng(seed)
    rows = 600
    one = np.array([[2.0, 3.0], [3.0, 2.0]])
    belief = Betas(np.broadcast_to(one, (1, rows, 2, 2)))
    weights = np.broadcast_to((-1.0, 1.0), (1, rows, 2))
    action = rng.uniform(0.6, 0.9, size=(1, rows, 1, 1))
    found = estimated_density(weights, belief, action)
    truth = exact((-1.0, 1.0), one, action[0, :, 0, 0])
    score = (found.log_prob[0, :, 0] - truth) / found.error[0]
    assert abs(score.mean()) < 7 / np.sqrt(rows)
    assert abs(np.mean(score**2) - 1) < 7 * np.sqrt(2 / rows)


def test_every_row_has_weights_of_its_own(seed):
    rng = np.random.default_rng(seed)
    belief = some_betas(1, 3, 2, rng)
    weights = np.array([[[0.0, 1.0], [1.0, 0.0], [-1.0, 1.0]]])
    action = np.full((1, 3, 1, 1), 0.4)
    found = estimated_density(weights, belief, action)
    for row in range(2):
        density = stats.beta.pdf(0.4, *belief.shape[0, row, 1 - row])
        np.testing.assert_allclose(found.log_prob[0, row, 0], np.log(density))
        assert found.error[0, row] == 0
    assert found.error[0, 2] > 0


@pytest.mark.parametrize("weights", [(-1.0, 1.0), (0.0, 0.0), (-1.0, -1.0), (-2.0, 1.5)], ids=str)
def test_where_nothing_is_left_nothing_is_known(weights):
    same = Betas(np.full((1, 2, 2, 2), 2.5))
    action = np.array([0.2, 0.9]).reshape(1, 2, 1, 1)
    found = estimated_density(np.broadcast_to(weights, (1, 2, 2)), same, action)
    assert not found.known.any()
    assert not np.isnan(found.error).any()
