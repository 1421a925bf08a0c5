import numpy as np
import pytest

from submax.models.regression.posterior_covariance import PosteriorCovariance


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
    np.testing.assert_allclose(covariance.inverse, case.posterior.inverse, atol=1e-9)


def test_new_rows_leave_the_earlier_covariance_as_it_was(case):
    covariance = PosteriorCovariance.of(case.posterior)
    before = covariance.inverse.copy()
    covariance.with_rows(case.features, case.number, case.weight)
    assert np.array_equal(covariance.inverse, before)


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
