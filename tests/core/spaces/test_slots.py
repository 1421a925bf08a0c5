import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax.core.errors import InputError
from submax.core.spaces.slots import Slots


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_numbering_follows_the_product_of_the_choices(sizes):
    space = Slots(tuple(sizes))
    expected = list(itertools.product(*map(range, sizes)))
    listed = space.action(np.arange(space.size))
    assert listed.tolist() == [list(action) for action in expected]
    assert space.index(listed).tolist() == list(range(len(expected)))
    assert space.slots == len(sizes)


@pytest.mark.parametrize(
    ("action", "expected"),
    [([1, 2], True), ([2, 0], False), ([0, 3], False), ([-1, 0], False), ([0], False)],
)
def test_contains_knows_the_borders_of_every_slot(action, expected):
    assert Slots((2, 3)).contains(np.array([action])) is expected


def test_the_space_of_the_paper_has_its_size():
    assert Slots((2, 4, 8, 16, 32)).size == 32768


@pytest.mark.parametrize("sizes", [(), (0,), (2, -1), (2.0,), (True, 2), ("2",)])
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(InputError):
        Slots(sizes)


def test_a_space_that_cannot_be_listed_says_so():
    with raises_code("invalid-input"):
        Slots((1000, 2000)).check_listable("my policy")
    Slots((1024, 1024)).check_listable("my policy")
