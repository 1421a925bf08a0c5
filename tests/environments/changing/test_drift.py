import numpy as np
import pytest

from submax.environments.changing.drift import drifted


def coefficients(count, memory):
    """What is kept of the old and what is taken of the new."""
    one, none = np.ones(1), np.zeros(1)
    return drifted(one, none, count, memory)[0], drifted(none, one, count, memory)[0]


@pytest.mark.parametrize("memory", [0.5, 10.0, 5000.0, 1e12])
@pytest.mark.parametrize("count", [0, 1, 7, 10_000])
def test_variance_is_kept(count, memory):
    kept, new = coefficients(count, memory)
    assert kept**2 + new**2 == pytest.approx(1.0, rel=1e-12)
    assert kept == pytest.approx(np.exp(-1 / memory) ** count, rel=1e-9)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (3, 20), (0, 5)])
def test_two_moves_are_one_of_the_sum(first, second):
    kept, new = coefficients(first, 30.0)
    kept_again, new_again = coefficients(second, 30.0)
    together = coefficients(first + second, 30.0)
    assert kept * kept_again == pytest.approx(together[0], rel=1e-12)
    assert np.hypot(new * kept_again, new_again) == pytest.approx(together[1], rel=1e-12)


def test_no_move_changes_nothing(seed):
    value, fresh = np.random.default_rng(seed).standard_normal((2, 3, 4))
    assert np.array_equal(drifted(value, fresh, 0, 5.0), value)
