"""States as bytes: records are known by tags, and come back as they were."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from refusals import raises_code

from submax.core.serialization import class_of, read_state, serializable, state_bytes, tag_of
from submax.core.spaces import Arms
from submax.models.regression.bayesian import Prior


class Own(NamedTuple):
    """A record of a policy of somebody's own."""

    counts: np.ndarray
    name: str


@dataclass(frozen=True)
class Point:
    """Another one, as a dataclass."""

    x: float = 0.0


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


@pytest.mark.parametrize("record", [Own(np.arange(3), "mine"), Point(2.0)], ids=repr)
def test_records_of_an_own_policy_are_looked_for_in_its_module_alone(record):
    data = state_bytes(record, {})
    again, _ = read_state(data, [__name__])
    assert type(again) is type(record)
    assert again[1:] == record[1:] if isinstance(record, Own) else again == record
    with raises_code("invalid-input"):
        read_state(data)


def test_a_tag_belongs_to_one_class():
    assert tag_of(Prior(0.5, np.zeros((1, 3)))) == "prior"
    with raises_code("invalid-input"):
        serializable("prior")(Own)
    assert class_of("prior", {}) is Prior
    with raises_code("invalid-input"):
        class_of("no-such-record", {})


def test_a_class_that_is_defined_again_takes_its_tag_over():
    first, again = (serializable("a-record-of-a-test")(type("Again", (), {})) for _ in range(2))
    assert first is not again
    assert class_of("a-record-of-a-test", {}) is again


def test_a_class_of_submax_without_a_tag_is_refused():
    untagged = type("Untagged", (), {"__module__": "submax.somewhere"})
    with raises_code("invalid-input"):
        tag_of(untagged())


OLD_FORMAT = state_bytes(Arms(2), {}).replace(b"submax-state-2", b"submax-state-1")


@pytest.mark.parametrize("data", [b"", b"x" * 100, (10**9).to_bytes(8, "little"), OLD_FORMAT])
def test_other_bytes_are_refused(data):
    with raises_code("invalid-input"):
        read_state(data)


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([object()]), {1: 2.0}])
def test_what_would_not_come_back_the_same_is_refused(value):
    with raises_code("invalid-input"):
        state_bytes(value, {})
