"""Checks of values that users pass in, and the errors that they raise."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from refusals import raises_code

import submax
from submax.core import errors
from submax.core.checks import at_least, non_negative, one_of, positive, probability, whole_number
from submax.core.errors import ConflictError, Error, InputError, StoreError

NO_NUMBERS = [True, None, "1", 1j, float("nan"), -float("inf")]
ERRORS = [
    one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.Error)
]


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda *given: whole_number(*given, at_least=0), [0, np.int64(3), 10**30], [-1, 1.0]),
        (positive, [1e-300, 1, np.float32(2), Fraction(1, 3)], [0, -1e-300]),
        (non_negative, [0, 0.0, 7.5], [-1e-300, -1]),
        (probability, [0, 1, np.float64(1.0)], [-1e-9, 1 + 1e-9]),
        (lambda *given: at_least(*given, 0.05), [0.05, 1, np.float64(3.5)], [0.049, -1]),
    ],
)
def test_numbers_within_their_range_pass_and_nothing_else(check, good, bad):
    for value in good:
        check("size", value)
    for value in [*bad, *NO_NUMBERS]:
        with raises_code("invalid-input", "size"):
            check("size", value)


@pytest.mark.parametrize("allowed", [["ucb1", "random"], [], list(map(str, range(500)))])
def test_a_word_that_is_not_allowed_is_refused(allowed):
    for word in allowed:
        one_of("policy", word, allowed)
    with raises_code("invalid-input", "policy"):
        one_of("policy", "ubc1", allowed)


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_a_code_of_its_own(kind):
    assert issubclass(kind, Error)
    assert kind("a sentence").code == kind.default_code
    assert [one for one in ERRORS if one.default_code == kind.default_code] == [kind]


def test_an_error_carries_its_code_and_parameter_to_another_process():
    error = InputError("no such arm", code="unknown-arm", parameter="arm")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code, again.parameter) == ("no such arm", "unknown-arm", "arm")


def test_errors_can_be_caught_as_those_of_python():
    assert issubclass(ConflictError, InputError)
    assert issubclass(InputError, ValueError)
    assert issubclass(StoreError, RuntimeError)
    assert submax.Error is Error
