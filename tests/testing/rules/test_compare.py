import numpy as np
import pytest

from submax.testing.rules.compare import require_at_most, require_close

RULE = "what is found must be what is expected"


def test_the_two_numbers_that_differ_most_are_named_with_their_place():
    found, expected = np.array([[0.1, 0.25], [0.3, 0.4]]), np.array([[0.1, 0.2], [0.31, 0.4]])
    words = r"^float breaks a rule: what is .*; found 0.25, expected 0.2 at \[0, 1\]"
    with pytest.raises(AssertionError, match=words):
        require_close(found, expected, 0.5, RULE)


def test_nan_is_reported_before_any_distance():
    with pytest.raises(AssertionError, match=r"found nan, expected 1 at \[1\]"):
        require_close(np.array([5.0, np.nan]), 1.0, 0.5, RULE)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(AssertionError, match=r"the shapes are \[2\] and \[3\]"):
        require_close(np.zeros(2), np.zeros(3), 0.5, RULE)


def test_a_number_above_its_limit_is_named():
    require_at_most(np.array([1.0, 2.0]), 2.0, 0.5, RULE)
    with pytest.raises(AssertionError, match=r"found 3, expected at most 2 at \[1\]"):
        require_at_most(np.array([1.0, 3.0]), 2.0, 0.5, RULE)


def test_numbers_within_the_tolerance_pass():
    require_close(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-12]), 0.5, RULE)
