import numpy as np
import pytest

from submax.models.regression.standardization import standardization


def normal(seed, rows=500):
    rng = np.random.default_rng((seed, 5))
    return rng.normal(40.0, 10.0, size=(rows, 2)), rng


def test_numbers_without_outliers_have_their_mean_and_deviation(seed):
    context, _ = normal(seed)
    shift, scale = standardization(context, np.ones(500))
    np.testing.assert_allclose(shift, context.mean(axis=0))
    np.testing.assert_allclose(scale, 1 / context.std(axis=0))


@pytest.mark.parametrize("absurd", [1e6, -1e6, 1e300])
@pytest.mark.parametrize("rows", [30, 500])
def test_one_absurd_value_does_not_hide_the_others(absurd, rows, seed):
    context, rng = normal(seed, rows)
    context[rng.integers(rows), 0] = absurd
    _, scale = standardization(context, np.ones(rows))
    # One value counts as at most 20 usual distances, which are below 0.8 deviations each.
    most = np.sqrt(1 + 20**2 / rows) * 1.5
    assert 1 / (10 * most) < scale[0] < 1.5 / 10


def test_rare_categories_keep_their_deviation(seed):
    rng = np.random.default_rng(seed)
    context = np.zeros((400, 2))
    context[rng.choice(400, 3, replace=False), 0] = 1.0
    context[rng.choice(400, 60, replace=False), 1] = 1.0
    shift, scale = standardization(context, np.ones(400))
    np.testing.assert_allclose(shift, context.mean(axis=0))
    np.testing.assert_allclose(scale, 1 / context.std(axis=0))


def test_a_row_of_weight_two_counts_twice(seed):
    context, rng = normal(seed, 60)
    context[0] = 1e4
    weight = rng.integers(1, 4, size=60)
    one = standardization(context, weight.astype(float))
    other = standardization(np.repeat(context, weight, axis=0), np.ones(weight.sum()))
    np.testing.assert_allclose(one, other)


def test_no_rows_and_constant_numbers_have_no_scale():
    assert not np.any(standardization(np.zeros((0, 3)), np.zeros(0)))
    shift, scale = standardization(np.full((5, 1), 0.1), np.ones(5))
    assert shift == pytest.approx(0.1)
    assert scale == 0
