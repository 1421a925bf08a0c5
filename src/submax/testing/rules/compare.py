"""Comparisons of numbers by the suites; a failure names the two numbers and their place."""

from typing import Any

import numpy as np

from submax.testing.rules.require import require


def require_close(
    found: Any,
    expected: Any,
    subject: object,
    rule: str,
    rtol: float = 1e-9,
    atol: float = 1e-12,
) -> None:
    """Raise an AssertionError that names the two numbers that differ most, if any differ.

    ``rtol`` and ``atol`` are the tolerances of ``numpy.isclose``. Arrays are broadcast.
    """
    if np.shape(found) != np.shape(expected) and not _broadcasts(found, expected):
        shapes = f"the shapes are {list(np.shape(found))} and {list(np.shape(expected))}"
        require(False, subject, f"{rule}; {shapes}")
    left, right = np.broadcast_arrays(np.asarray(found), np.asarray(expected))
    apart = ~np.isclose(left, right, rtol=rtol, atol=atol)
    if apart.any():
        _report(left, right, apart, subject, rule)


def require_at_most(found: Any, limit: Any, subject: object, rule: str) -> None:
    """Raise an AssertionError that names the number that exceeds its limit most, if any does."""
    left, right = np.broadcast_arrays(np.asarray(found), np.asarray(limit))
    above = ~(left <= right)
    if above.any():
        _report(left, right, above, subject, rule, "at most ")


def _broadcasts(found: Any, expected: Any) -> bool:
    try:
        np.broadcast_shapes(np.shape(found), np.shape(expected))
    except ValueError:
        return False
    return True


def _report(left: Any, right: Any, wrong: Any, subject: object, rule: str, limit: str = "") -> None:
    with np.errstate(invalid="ignore"):
        distance = np.where(wrong, np.abs(left - right), -1.0)
    # A distance that is not a number is the largest.
    place = np.unravel_index(np.argmax(np.nan_to_num(distance, nan=np.inf)), distance.shape)
    where = f" at {[int(one) for one in place]}" if place else ""
    numbers = f"found {float(left[place]):.12g}, expected {limit}{float(right[place]):.12g}"
    require(False, subject, f"{rule}; {numbers}{where}")
