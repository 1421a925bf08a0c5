from typing import NamedTuple

import numpy as np
import pytest
from refusals import raises_code

from submax.core.running.state_file import read_state, state_bytes
from submax.core.running.stored import class_of, stored, tag_of
from submax.core.spaces.arms import Arms
from submax.models.regression.prior import Prior


class Own(NamedTuple):
    """A record of a policy of somebody's own."""

    counts: np.ndarray
    name: str


def test_records_are_read_as_they_were_written():
    given = (Prior(0.5, np.arange(6.0).reshape(2, 3)), Arms(3), {"a": [1, 2.5, None, "x"]}, True)
    (prior, *rest), facts = read_state(state_bytes(given, {"version": 3}))
    assert isinstance(prior, Prior)
    assert prior.noise == 0.5
    np.testing.assert_array_equal(prior.variance, given[0].variance)
    assert tuple(rest) == given[1:]
    assert facts == {"version": 3}


def test_files_know_records_by_tag_and_not_by_module():
    data = state_bytes((Prior(0.5, np.zeros((1, 3))), Arms(2)), {})
    assert b"prior" in data
    assert b"arms" in data
    assert b"submax." not in data


def test_records_of_an_own_policy_are_looked_for_in_its_module_alone():
    data = state_bytes(Own(np.arange(3), "mine"), {})
    again, _ = read_state(data, [__name__])
    assert isinstance(again, Own)
    assert again.name == "mine"
    with raises_code("invalid-input"):
        read_state(data)


def test_a_tag_belongs_to_one_class():
    assert tag_of(Prior(0.5, np.zeros((1, 3)))) == "prior"
    assert class_of("prior", {}) is Prior
    with raises_code("invalid-input"):
        stored("prior")(Own)
    with raises_code("invalid-input"):
        class_of("no-such-record", {})


def test_bytes_of_another_format_are_refused():
    data = state_bytes(Arms(2), {}).replace(b"submax-state-2", b"submax-state-1")
    with raises_code("invalid-input"):
        read_state(data)


@pytest.mark.parametrize("data", [b"", b"x" * 100, (10**9).to_bytes(8, "little")])
def test_other_bytes_are_refused(data):
    with raises_code("invalid-input"):
        read_state(data)


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([object()]), {1: 2.0}])
def test_what_would_not_come_back_the_same_is_refused(value):
    with raises_code("invalid-input"):
        state_bytes(value, {})
