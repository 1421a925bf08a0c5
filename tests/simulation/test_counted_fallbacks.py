import warnings

import pytest

from submax.core.fallback import Fallback
from submax.simulation.counted_fallbacks import counted_fallbacks


class Simpler(Fallback):
    """A kind of its own."""


def fail(warning, error):
    warnings.warn(warning, stacklevel=1)
    raise error


def test_without_warnings_nothing_is_counted():
    with counted_fallbacks() as counts:
        pass
    assert counts == []


def test_the_decisions_of_all_fallbacks_add_up():
    with counted_fallbacks() as counts:
        for decisions in (3, 1, 3):
            # The same words from the same place, which the default filter shows once.
            warnings.warn(Fallback("uniform instead", decisions), stacklevel=1)
        warnings.warn(Simpler("optimistic instead", 40), stacklevel=1)
    assert counts == [3, 1, 3, 40]


@pytest.mark.parametrize("action", ["error", "ignore", "default"])
def test_they_are_counted_whatever_the_filters_outside(action):
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        with counted_fallbacks() as counts:
            warnings.warn(Simpler("optimistic instead", 2), stacklevel=1)
            warnings.warn(Fallback("uniform instead", 5), stacklevel=1)
    assert counts == [2, 5]


def test_other_warnings_pass_with_their_category_and_place():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with counted_fallbacks() as counts:
            warnings.warn("old", DeprecationWarning, stacklevel=1)
            warnings.warn(Fallback("uniform instead", 7), stacklevel=1)
            warnings.warn("slow", RuntimeWarning, stacklevel=1)
    assert counts == [7]
    assert [(one.category, str(one.message)) for one in told] == [
        (DeprecationWarning, "old"),
        (RuntimeWarning, "slow"),
    ]
    assert {one.filename for one in told} == {__file__}
    assert told[0].lineno == told[1].lineno - 2


def test_other_warnings_that_are_errors_stay_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="slow"), counted_fallbacks():
            warnings.warn("slow", RuntimeWarning, stacklevel=1)


def test_an_error_in_the_body_passes():
    error = KeyError("arm")
    with pytest.raises(KeyError) as raised, counted_fallbacks():
        fail(Fallback("uniform instead", 7), error)
    assert raised.value is error


def test_other_warnings_pass_also_when_the_body_raises():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(KeyError), counted_fallbacks():
            fail(DeprecationWarning("old"), KeyError("arm"))
    assert [one.category for one in told] == [DeprecationWarning]


def test_the_filters_are_as_before():
    before = list(warnings.filters)
    with counted_fallbacks():
        pass
    with pytest.raises(KeyError), counted_fallbacks():
        raise KeyError("arm")
    assert warnings.filters == before
