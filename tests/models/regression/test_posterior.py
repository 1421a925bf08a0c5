import numpy as np
import pytest

from submax.models.regression import posterior
from submax.models.regression.posterior import Posterior
from submax.models.regression.prior import Prior, PriorStructure
from submax.models.regression.sums import Sums

DRAWS = 40_000
LARGEST_DEVIATION = 7.0
"""In standard errors: exceeded once in 4e11 comparisons, and each test makes some hundred."""


def test_the_mean_is_that_of_the_dense_distribution(case):
    mean, _, _ = case.dense()
    np.testing.assert_allclose(case.posterior.coefficients, mean, atol=1e-10)


def test_the_variance_is_that_of_the_dense_distribution(case, seed):
    _, covariance, _ = case.dense()
    count, width = case.structure.regressions, case.features.shape[1]
    asked = np.random.default_rng(seed).normal(size=(5, width))
    blocks = covariance.reshape(count, width, count, width)
    expected = [[row @ blocks[number, :, number] @ row for number in range(count)] for row in asked]
    np.testing.assert_allclose(case.posterior.variance(asked), expected, atol=1e-10)


def test_draws_have_the_covariance_of_the_dense_distribution(case, seed):
    _, covariance, _ = case.dense()
    drawn = case.posterior.draws(DRAWS, np.random.default_rng(seed)).reshape(DRAWS, -1)
    variance = np.diag(covariance)
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / DRAWS)
    assert np.all(np.abs(drawn.T @ drawn / DRAWS - covariance) < LARGEST_DEVIATION * error)
    assert np.all(np.abs(drawn.mean(axis=0)) < LARGEST_DEVIATION * np.sqrt(variance / DRAWS))


def test_the_evidence_is_the_density_of_the_rewards(case):
    _, _, evidence = case.dense()
    assert case.posterior.log_evidence == pytest.approx(evidence, abs=1e-8)


def test_draws_keep_the_prior_in_directions_without_rows(seed):
    # Many rows with little noise say nothing about the last feature, whose prior is narrow.
    rng = np.random.default_rng(seed)
    features = np.column_stack([np.ones(5000), rng.normal(size=5000), np.zeros(5000)])
    sums = Sums.empty(1, 3, 0.0).add(
        features, np.zeros(5000, dtype=int), features[:, 1], np.ones(5000)
    )
    variance = np.array([[1.0] * 3, [1.0] * 3, [1e-4] * 3])
    structure = PriorStructure.independent(np.array([0, 1, 2]), 1)
    found = Posterior.of(sums, structure, Prior(1e-6, variance), 0.0)
    drawn = found.draws(DRAWS, rng)[:, 0, 2]
    assert np.mean(drawn**2) == pytest.approx(
        1e-4, abs=LARGEST_DEVIATION * 1e-4 * (2 / DRAWS) ** 0.5
    )


def test_roots_are_those_of_the_covariance_of_each_regression(case):
    if len(case.posterior.coupling):
        with pytest.raises(AssertionError, match="must be independent"):
            case.posterior.roots()
        return
    _, covariance, _ = case.dense()
    for number, root in enumerate(case.posterior.roots()):
        mine = slice(6 * number, 6 * number + 6)
        np.testing.assert_allclose(root.T @ root, covariance[mine, mine], atol=1e-10)


def test_large_matrices_are_inverted_like_small_ones(case, monkeypatch):
    small = case.posterior
    monkeypatch.setattr(posterior, "BATCHED_WIDTH", 0)
    assert case.posterior.log_evidence == pytest.approx(small.log_evidence, abs=1e-9)
    np.testing.assert_allclose(case.posterior.inverse, small.inverse, atol=1e-12)


def test_no_draws_are_no_draws(case, seed):
    drawn = case.posterior.draws(0, np.random.default_rng(seed))
    assert drawn.shape == (0, case.structure.regressions, 6)


def test_without_evidence_everything_else_is_the_same(case):
    found = Posterior.of(case.sums, case.structure, case.prior, case.centre, evidence=False)
    assert np.isnan(found.log_evidence)
    np.testing.assert_equal(found[:-1], case.posterior[:-1])
