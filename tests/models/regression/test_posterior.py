"""Priors that regressions share, and exact posteriors."""

import numpy as np
import pytest
from scipy import stats

from submax.models.regression import bayesian as posterior
from submax.models.regression.bayesian import (
    ALIKE,
    BATCHED_WIDTH,
    COMMON,
    OWN,
    FeatureRows,
    Posterior,
    PosteriorCovariance,
    Prior,
    PriorStructure,
    Sums,
    fitted,
    moments_of,
)

GROUPS = np.array([0, 1, 1, 1])


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_directions_are_orthonormal_and_span_what_describes_the_actions(unit, seed):
    rng = np.random.default_rng(seed)
    alike = rng.normal(size=(6, 2)) * [1.0, unit]
    structure = PriorStructure.sharing(GROUPS, 6, alike)
    directions = structure.directions
    np.testing.assert_allclose(directions.T @ directions, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(directions[:, 0], 6**-0.5)
    span = np.column_stack([np.ones(6), alike / [1.0, unit]])
    np.testing.assert_allclose(directions @ (directions.T @ span), span, atol=1e-9)
    assert structure.kinds.tolist() == [COMMON, ALIKE, ALIKE]
    assert structure.dimensions(2)[1][[OWN, COMMON, ALIKE]].tolist() == [9, 3, 6]


def test_numbers_that_say_nothing_add_no_direction(seed):
    column = np.random.default_rng(seed).normal(size=5)
    alike = np.column_stack([column, np.full(5, 0.1), 3 * column - 7, np.zeros(5)])
    assert PriorStructure.sharing(GROUPS, 5, alike).kinds.tolist() == [COMMON, ALIKE]
    assert PriorStructure.sharing(GROUPS, 5, alike[:, [1]]).kinds.tolist() == [COMMON]


def test_described_regressions_are_explained_by_what_describes_them(seed):
    """Five of six regressions have rows, and their constants lie on a line of what describes them.

    The sixth one has no row and is expected on the same line.
    """
    rng = np.random.default_rng(seed)
    number = np.arange(200) % 5
    reward = 0.1 * number + 0.01 * rng.normal(size=200)
    sums = Sums.empty(6, 1, float(reward.mean())).add(
        np.ones((200, 1)), number, reward, np.ones(200)
    )
    structure = PriorStructure.sharing(np.array([0]), 6, np.arange(6.0)[:, None])
    start = Prior.vague(1, sums.variance, described=True)
    found = fitted(sums, structure, start, float(reward.mean()), steps=5)
    assert found.coefficients[5, 0] + reward.mean() == pytest.approx(0.5, abs=0.02)


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


def test_the_evidence_is_the_density_of_the_rewards(case):
    _, _, evidence = case.dense()
    assert case.posterior.log_evidence == pytest.approx(evidence, abs=1e-8)


def test_roots_are_those_of_the_covariance_of_each_regression(case):
    if len(case.posterior.coupling):
        return
    _, covariance, _ = case.dense()
    for number, root in enumerate(case.posterior.roots()):
        mine = slice(6 * number, 6 * number + 6)
        np.testing.assert_allclose(root.T @ root, covariance[mine, mine], atol=1e-10)


def test_more_features_than_are_inverted_together_have_the_posterior_of_their_definition(seed):
    width = BATCHED_WIDTH + 3
    rng = np.random.default_rng(seed)
    features, reward = rng.normal(size=(50, width)), rng.normal(size=50)
    sums = Sums.empty(1, width, 0.0).add(features, np.zeros(50, dtype=int), reward, np.ones(50))
    structure = PriorStructure.independent(np.zeros(width, dtype=int), 1)
    found = Posterior.of(sums, structure, Prior(0.7, np.full((1, 3), 2.0)), 0.0)
    marginal = 2.0 * features @ features.T + 0.7 * np.eye(50)
    expected = 2.0 * features.T @ np.linalg.solve(marginal, reward)
    np.testing.assert_allclose(found.coefficients[0], expected, atol=1e-10)
    evidence = stats.multivariate_normal(np.zeros(50), marginal).logpdf(reward)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-8)


@pytest.mark.parametrize("share", [0.6, 1e9], ids=["some have few rows", "all have few rows"])
def test_regressions_with_few_rows_have_the_same_posterior(case, share, monkeypatch):
    monkeypatch.setattr(posterior, "FEW_ROWS", share)
    rows = FeatureRows(case.features, case.number, case.weight)
    found = Posterior.of(case.sums, case.structure, case.prior, case.centre, rows=rows)
    mean, covariance, evidence = case.dense()
    np.testing.assert_allclose(found.coefficients, mean, atol=1e-9)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-8)
    variance = np.einsum("nf,kfkg,ng->nk", *_by_regression(case, covariance))
    np.testing.assert_allclose(found.variance(case.features), variance, atol=1e-9)
    for mine, theirs in zip(moments_of(found), moments_of(case.posterior), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)


def _by_regression(case, covariance):
    shape = (case.structure.regressions, case.features.shape[1]) * 2
    return case.features, covariance.reshape(shape), case.features


def dense_covariance(case):
    """The covariance of all coefficients, divided by the units of both."""
    _, covariance, _ = case.dense()
    unit = np.tile(case.posterior.unit, case.structure.regressions)
    return covariance / unit / unit[:, None]


def test_a_response_is_multiplied_by_the_dense_covariance(case, seed):
    shape = (3, case.structure.regressions, case.features.shape[1])
    response = np.random.default_rng(seed).normal(size=shape)
    found = PosteriorCovariance.of(case.posterior).applied(case.structure, response)
    expected = response.reshape(3, -1) @ dense_covariance(case)
    np.testing.assert_allclose(found.reshape(3, -1), expected, atol=1e-9)


@pytest.mark.parametrize("first", [0, 1, 40, 69])
def test_rows_that_come_later_give_the_covariance_of_all_rows(case, first):
    columns = (case.features, case.number, case.reward, case.weight)
    early = case._replace(
        **dict(zip(case._fields, (column[:first] for column in columns), strict=False))
    )
    covariance = PosteriorCovariance.of(early.posterior)
    for begin in range(first, len(case.reward), 9):
        later = slice(begin, begin + 9)
        covariance = covariance.with_rows(
            case.features[later], case.number[later], case.weight[later]
        )
    np.testing.assert_allclose(covariance.inverse, case.posterior.inverse.dense(), atol=1e-9)


def test_random_responses_have_the_posterior_precision(case):
    """A response is linear in its random numbers, so its covariance is that of a matrix."""
    count, width = case.structure.regressions, case.features.shape[1]
    covariance, size = PosteriorCovariance.of(case.posterior), count * width
    unit_vectors, zeros = np.eye(size).reshape(size, count, width), np.zeros((size, count, width))
    of_prior = covariance.draw_responses(case.structure, unit_vectors, zeros).reshape(size, size)
    of_noise = covariance.draw_responses(case.structure, zeros, unit_vectors).reshape(size, size)
    # The noise Σ √w φ ε of a regression has the covariance Σ w φ φᵀ.
    gram = np.zeros((count, width, count, width))
    for number in range(count):
        gram[number, :, number] = case.sums.gram[number]
    found = of_prior.T @ of_prior + of_noise.T @ gram.reshape(size, size) @ of_noise
    expected = np.linalg.inv(dense_covariance(case))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
