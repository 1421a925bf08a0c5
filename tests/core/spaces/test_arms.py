import numpy as np
import pytest
from refusals import raises_code

from submax.core.spaces.arms import Arms


def test_arm_and_index_are_the_same_number():
    space = Arms(4)
    index = np.array([[3, 0], [1, 2]])
    action = space.action(index)
    assert action.shape == (2, 2, 1)
    assert np.array_equal(space.index(action), index)


@pytest.mark.parametrize(
    ("action", "expected"), [([[0], [3]], True), ([[4]], False), ([[-1]], False), ([[0, 0]], False)]
)
def test_contains_knows_the_borders(action, expected):
    assert Arms(4).contains(np.array(action)) is expected


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3", None, float("nan")])
def test_anything_but_a_whole_number_of_arms_is_refused(count):
    with raises_code("invalid-input", "arms"):
        Arms(count)
