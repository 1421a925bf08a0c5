import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax.simulation.batch_flush import BatchFlush


@given(st.integers(1, 60), st.integers(1, 60))
def test_every_full_batch_comes_back_and_the_rest_never_does(observations, size):
    known, back = [], 0
    for decide, receive in BatchFlush(size).schedule(observations):
        known += [back] * decide
        back += receive
    assert known == [decision // size * size for decision in range(observations)]
    assert back == observations // size * size


def test_its_length_is_the_size_of_a_batch():
    assert BatchFlush(30).length == 30
    assert BatchFlush() == BatchFlush(1)


@pytest.mark.parametrize("size", [0, -1, 1.0, True, "3", None, float("nan")])
def test_a_bad_size_is_refused(size):
    with raises_code("invalid-input", "size of a batch"):
        BatchFlush(size)
