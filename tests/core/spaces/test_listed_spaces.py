"""Arms, and slots with choices: spaces whose actions can be listed."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax.core.spaces import Arms, Slots


def test_arm_and_index_are_the_same_number():
    index = np.array([[3, 0], [1, 2]])
    action = Arms(4).action(index)
    assert action.shape == (2, 2, 1)
    assert np.array_equal(Arms(4).index(action), index)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_numbering_follows_the_product_of_the_choices(sizes):
    space = Slots(tuple(sizes))
    expected = list(itertools.product(*map(range, sizes)))
    listed = space.action(np.arange(space.size))
    assert listed.tolist() == [list(action) for action in expected]
    assert space.index(listed).tolist() == list(range(len(expected)))
    assert space.slots == len(sizes)


@pytest.mark.parametrize(
    ("space", "inside", "outside"),
    [
        (Arms(4), [[0], [3]], [[4], [-1], [0, 0]]),
        (Slots((2, 3)), [[1, 2], [0, 0]], [[2, 0], [0, 3], [-1, 0], [0]]),
    ],
    ids=repr,
)
def test_contains_knows_the_borders(space, inside, outside):
    assert space.contains(np.array(inside))
    for stranger in outside:
        assert not space.contains(np.array([stranger]))


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3", None])
def test_anything_but_a_whole_number_of_choices_is_refused(count):
    with raises_code("invalid-input", "arms"):
        Arms(count)
    with raises_code("invalid-input"):
        Slots((2, count))


def test_no_slots_are_refused():
    with raises_code("invalid-input", "sizes"):
        Slots(())


def test_a_space_that_is_too_large_to_be_listed_says_so():
    with raises_code("invalid-input"):
        Slots((1000, 2000)).check_listable("my policy")
    Slots((1024, 1024)).check_listable("my policy")
