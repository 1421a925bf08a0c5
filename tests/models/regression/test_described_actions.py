import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.core.spaces.slots import Slots
from submax.models.regression.described_actions import MOST_COLUMNS, described_actions


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


@pytest.mark.parametrize("problem", [Problem(Arms(5)), arms([1, 2])], ids=["no features", "two"])
def test_without_features_or_with_two_actions_nothing_is_described(problem):
    assert described_actions(problem) is None


@pytest.mark.parametrize(("actions", "columns"), [(100, MOST_COLUMNS), (10, 5), (3, 1)])
def test_there_are_at_most_half_as_many_columns_as_actions(actions, columns, seed):
    numbers = np.random.default_rng((seed, 6)).normal(size=(30, actions))
    assert described_actions(arms(*numbers)).shape == (actions, columns)
