import numpy as np
import pytest
from scipy import optimize

from submax.models.regression.bayesian import (
    EXPECTED_SHARE,
    KINDS,
    LEAST_NOISE,
    OWN,
    RANGE,
    Posterior,
    Prior,
    PriorStructure,
    Sums,
    fitted,
    moments_of,
)

STEP = 1e-5


def evidence(case, logarithms):
    """The log-evidence for logarithms of the noise and of all variances."""
    variance = np.exp(logarithms[1:]).reshape(-1, KINDS)
    prior = Prior(float(np.exp(logarithms[0])), variance)
    return Posterior.of(case.sums, case.structure, prior, case.centre)


def logarithms(prior):
    return np.log(np.append(prior.noise, prior.variance))


def gradient(posterior):
    """Derivatives of the log-evidence by the logarithms of the noise and of each variance."""
    moments, prior = moments_of(posterior), posterior.prior
    groups = len(prior.variance)
    dimensions = posterior.structure.dimensions(groups)
    ratio = prior.variance / prior.variance[:, OWN, None]
    by_variance = ((moments.squares + moments.variances) / ratio - dimensions) / 2
    left = moments.residual / prior.noise + moments.used
    return (left - posterior.weight) / 2, by_variance


def test_the_gradient_is_that_of_finite_differences(case):
    start = logarithms(case.prior)
    found = np.append(*gradient(case.posterior))
    for number, derivative in enumerate(found):
        step = STEP * (np.arange(len(start)) == number)
        higher = evidence(case, start + step).log_evidence
        lower = evidence(case, start - step).log_evidence
        assert derivative == pytest.approx((higher - lower) / (2 * STEP), abs=1e-5)


def penalized(case, point):
    """The log-evidence plus the log-densities of the variances, and its derivatives.

    The logarithm of a variance v has the density of an inverse gamma distribution of v, with shape
    1/2 and scale s/2: it is −(log v + s / v) / 2 but for a constant.
    """
    posterior, logarithm = evidence(case, point), point[1:]
    expected = EXPECTED_SHARE * case.sums.variance * np.exp(-logarithm)
    # Variances of kinds that no direction has do not count.
    groups = len(case.prior.variance)
    counts = np.ravel(case.structure.dimensions(groups)) > 0
    value = posterior.log_evidence - np.sum(counts * (logarithm + expected)) / 2
    slope = np.append(*gradient(posterior))
    slope[1:] += counts * (expected - 1) / 2
    return value, slope


def test_many_steps_from_anywhere_end_where_the_penalized_evidence_is_highest(shared_case):
    case = shared_case

    def loss(point):
        value, slope = penalized(case, point)
        return -value, -slope

    reach = case.sums.variance * np.array([1 / RANGE, RANGE])
    bounds = [np.log(reach)] * (1 + case.prior.variance.size)
    best = optimize.minimize(loss, logarithms(case.prior), jac=True, bounds=bounds)
    for scale in (1e-3, 1.0, 1e3):
        start = Prior.vague(3, scale * case.sums.variance)
        found = fitted(case.sums, case.structure, start, case.centre, steps=500)
        value, slope = penalized(case, logarithms(found.prior))
        assert value == pytest.approx(-best.fun, abs=0.01)
        np.testing.assert_allclose(slope, 0.0, atol=0.01)


def test_the_constants_of_few_actions_can_be_learned_after_a_start_without_differences(seed):
    """Without a prior on the variance it would stay near zero, and the constants with it."""
    rng = np.random.default_rng(seed)
    features, structure = np.ones((4000, 1)), PriorStructure.sharing(np.array([0]), 3)
    number = np.arange(4000) % 3
    equal = (rng.random(4000) < 0.5).astype(float)
    better = (rng.random(4000) < 0.5 + 0.1 * (number == 2)).astype(float)
    first = Sums.empty(3, 1, 0.5).add(features, number, equal, np.ones(4000))
    start = fitted(first, structure, Prior.vague(1, 0.25), 0.5, steps=50).prior
    both = first.add(features, number, better, np.ones(4000))
    found = fitted(both, structure, start, 0.5, steps=1).coefficients[:, 0]
    # The mean of the last action is 0.05 above that of the others, ± 0.5 / √2667 for each mean.
    assert found[2] - found[:2].mean() > 0.05 - 6 * 0.5 * (1.5 / 2667) ** 0.5


def test_rewards_without_noise_leave_a_little(seed):
    rng = np.random.default_rng(seed)
    features = np.column_stack([np.ones(50), rng.normal(size=50)])
    reward, number = features @ [2.0, 3.0], np.zeros(50, dtype=int)
    sums = Sums.empty(1, 2, float(reward.mean())).add(features, number, reward, np.ones(50))
    structure = PriorStructure.independent(np.array([0, 1]), 1)
    found = fitted(sums, structure, Prior.vague(2, sums.variance), float(reward.mean()), 50)
    assert found.prior.noise == pytest.approx(LEAST_NOISE * sums.variance)
    assert found.coefficients[0, 1] == pytest.approx(3.0, rel=0.01)


def test_rewards_of_noise_alone_leave_no_slopes(seed):
    rng = np.random.default_rng(seed)
    features = np.column_stack([np.ones(2000), rng.normal(size=(2000, 20))])
    reward, number = rng.normal(size=2000), rng.integers(3, size=2000)
    sums = Sums.empty(3, 21, 0.0).add(features, number, reward, np.ones(2000))
    structure = PriorStructure.sharing(np.array([0] + [1] * 20), 3)
    found = fitted(sums, structure, Prior.vague(2, sums.variance), 0.0, 50)
    # By least squares alone the squares of the 60 slopes would add up to about 60 · 3 / 2000.
    # What is left of them has the mean 0.11 and the standard deviation 0.05 over 100 seeds.
    assert np.sum(found.coefficients[:, 1:] ** 2) < (0.11 + 10 * 0.05) * 60 * 3 / 2000
    assert found.prior.noise == pytest.approx(1.0, abs=6 * (2 / 2000) ** 0.5)
