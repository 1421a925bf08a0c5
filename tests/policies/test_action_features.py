"""Features of actions: an action that was never tried is judged by its like."""

import numpy as np
import pytest
from observations import observed, taught

from submax import Arms, Continuous, Problem, Slots
from submax.models.regression.bayesian import MOST_COLUMNS, described_actions
from submax.policies.regressions import MOST_SHARED, PosteriorSubMax


def arms(*columns):
    rows = tuple(zip(*(map(float, column) for column in columns), strict=True))
    return Problem(Arms(len(rows)), action_features=(rows,))


def test_the_columns_are_orthogonal_and_keep_all_distances(seed):
    numbers = np.random.default_rng((seed, 2)).normal(size=(3, 8)) * [[1.0], [100.0], [1e-3]]
    found = described_actions(arms(*numbers))
    products = found.T @ found
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)
    # Distances between actions are those of the standardized features.
    standardized = ((numbers.T - numbers.mean(axis=1)) / numbers.std(axis=1))[:, None]
    expected = np.sum((standardized - standardized.swapaxes(0, 1)) ** 2, axis=-1)
    distance = np.sum((found[:, None] - found) ** 2, axis=-1)
    np.testing.assert_allclose(distance, expected, atol=1e-8)


def test_joint_actions_have_the_features_of_their_choices(seed):
    rng = np.random.default_rng((seed, 4))
    first, second = (tuple(map(tuple, rng.normal(size=(size, 1)).tolist())) for size in (3, 4))
    found = described_actions(Problem(Slots((3, 4)), action_features=(first, second)))
    joint = [(one[0], other[0]) for one in first for other in second]
    expected = described_actions(Problem(Arms(12), action_features=(tuple(joint),)))
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)


@pytest.mark.parametrize(
    "useless",
    [[7, 7, 7, 7], [0, 0, 1, 0], [1, 1, 1 + 1e-12, 1 + 1e-12]],
    ids=["a constant", "one action alone", "rounding"],
)
def test_a_feature_that_relates_no_actions_is_left_out(useless):
    useful = [1, 2, 3, 5]
    found = described_actions(arms(useful, useless))
    assert np.array_equal(found, described_actions(arms(useful)))
    assert described_actions(arms(useless)) is None


PRICES = np.linspace(1.0, 3.0, 8)
NEW = len(PRICES) - 1
"""The dearest action, which no row has."""
ASKED = np.array([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]])
SMALL = PosteriorSubMax(features=40)


def truth(price, context):
    return 0.1 + 0.2 * price + 0.1 * price * context[..., 0]


def learned(features, seed):
    rng, rows = np.random.default_rng(seed), 300
    problem = Problem(Arms(len(PRICES)), 2, Continuous(), features)
    context = rng.standard_normal((1, rows, 2))
    action = rng.integers(NEW, size=(1, rows, 1))
    reward = truth(PRICES[action[..., 0]], context) + 0.1 * rng.standard_normal((1, rows))
    return taught(SMALL, problem, observed(action, reward, context, -np.log(NEW)), seed)


@pytest.mark.parametrize("seed", range(3))
def test_an_action_that_was_never_tried_is_expected_on_the_line_of_its_price(seed):
    state = learned((tuple((price,) for price in PRICES),), seed)
    found = SMALL.expected_rewards(state, ASKED)[0, :, NEW]
    np.testing.assert_allclose(found, truth(PRICES[NEW], ASKED)[0], atol=0.06)
    assert SMALL.probabilities(state, ASKED)[0, 0, NEW] > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_without_features_it_is_expected_to_be_like_the_average(seed):
    state = learned((), seed)
    found = SMALL.expected_rewards(state, ASKED)[0, 0, NEW]
    assert abs(found - truth(PRICES[:NEW].mean(), ASKED)[0, 0]) < 0.1
    assert SMALL.probabilities(state, ASKED)[0, 0, NEW] < 0.1


def test_features_that_say_nothing_are_not_believed():
    rng = np.random.default_rng(5)
    shuffled = tuple((price,) for price in rng.permutation(PRICES))
    found, expected = (
        SMALL.expected_rewards(learned(features, 0), ASKED)[0, :, :NEW]
        for features in ((shuffled,), ())
    )
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_many_features_are_reduced_and_leave_fewer_features_of_the_context():
    rows = tuple(map(tuple, np.random.default_rng(0).standard_normal((40, 30)).tolist()))
    problem = Problem(Arms(40), 3, action_features=(rows,))
    settings = PosteriorSubMax().settings(problem)
    assert settings.action_features.shape == (40, MOST_COLUMNS)
    assert settings.features == MOST_SHARED // (1 + MOST_COLUMNS)
