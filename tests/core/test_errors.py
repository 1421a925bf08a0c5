import pickle

import pytest

import submax
from submax.core import errors
from submax.core.errors import ConflictError, InputError, StoreError, SubmaxError

ALL = [one for one in vars(errors).values() if isinstance(one, type)]


@pytest.mark.parametrize("kind", ALL)
def test_every_error_has_a_code_of_its_own_and_ends_in_error(kind):
    assert issubclass(kind, SubmaxError)
    assert kind.__name__.endswith("Error")
    assert kind("a sentence").code == kind.default_code
    assert [one for one in ALL if one.default_code == kind.default_code] == [kind]


def test_an_error_can_carry_a_code_of_its_own_also_to_another_process():
    error = pickle.loads(pickle.dumps(InputError("no such arm", code="unknown-arm")))
    assert (str(error), error.code) == ("no such arm", "unknown-arm")


def test_errors_can_be_caught_as_those_of_python():
    assert issubclass(ConflictError, InputError)
    assert issubclass(InputError, ValueError)
    assert issubclass(StoreError, RuntimeError)
    assert submax.SubmaxError is SubmaxError
