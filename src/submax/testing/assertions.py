"""How a conformance suite reports what is wrong."""

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.conditioning import Estimator, Strategy
from submax.core.environment import Environment
from submax.core.policy import Policy
from submax.core.rewards import Scale

SUITES: dict[type, str] = {
    Policy: "check_policy",
    Estimator: "check_estimator",
    Strategy: "check_strategy",
    Environment: "check_environment",
    Scale: "check_scale",
}
"""The suite for each contract."""
AXES = {
    "R": "replicas",
    "n": "decisions",
    "S": "parts of an action",
    "M": "joint actions",
    "L": "reward levels",
    "D": "context variables",
    "draws": "draws",
}
"""What the letters of shapes count, in the words of docs/reference/glossary.md."""
CHARACTERS = 1000
"""How much of an object is shown: a store in memory may hold megabytes."""


def require(condition: object, subject: object, rule: str) -> None:
    """Raise an AssertionError that names the class and the broken rule."""
    if not condition:
        kind = type(subject).__name__
        raise AssertionError(f"{kind} breaks a rule: {rule} ({subject!r:.{CHARACTERS}}).")


def require_shape(
    found: Any, axes: str, sizes: tuple[int, ...], subject: object, what: str
) -> None:
    """Raise an AssertionError unless an array has the ``sizes``; ``axes`` are their letters.

    The letters are divided by spaces, and `AXES` explains them. ``what`` names the array.
    """
    shape = getattr(found, "shape", None)
    if shape == sizes:
        return
    letters = axes.split()
    meaning = ", ".join(
        f"{letter} = {size} {AXES[letter]}" for letter, size in zip(letters, sizes, strict=True)
    )
    rule = f"{what} must have shape [{', '.join(letters)}] = {list(sizes)}, {_unlike(found)}"
    require(False, subject, f"{rule}; {meaning}")


def require_table_shape(
    found: Any, axis: str, sizes: tuple[int, ...], subject: object, what: str
) -> None:
    """Raise an AssertionError unless an array has the leading axes of a table and one more."""
    if getattr(found, "shape", None) != sizes:
        rule = f"{what} must have shape [..., {axis}] = {list(sizes)}, {_unlike(found)}"
        require(False, subject, f"{rule}; {axis} {AXES[axis]}, after the leading axes of the table")


def _unlike(found: Any) -> str:
    """What was found in place of an array of the right shape."""
    shape = getattr(found, "shape", None)
    return f"not a {type(found).__name__}" if shape is None else f"not {list(shape)}"


def require_equal_copy(subject: object) -> None:
    """Raise an AssertionError unless the pickled copy of an object is equal to the object."""
    try:
        restored = pickle.loads(pickle.dumps(subject))
    except Exception as error:
        kind = type(subject)
        local = "<locals>" in kind.__qualname__
        advice = (
            f"the class {kind.__name__} is defined inside a function: move it to a module"
            if local
            else "keep only plain values, dataclasses and arrays in its fields"
        )
        rule = "it must be possible to pickle it, for simulations in several processes"
        require(False, subject, f"{rule}, and pickle says: {error}; {advice}")
    require(restored == subject, subject, "it must be equal to its pickled copy")


def require_instance(subject: object, contract: type) -> None:
    """Raise an AssertionError unless the subject is an instance of the contract."""
    if isinstance(subject, type):
        raise AssertionError(
            f"the class {subject.__name__} was given, and the suite tests an instance: "
            f"give {subject.__name__}(...), with the parameters to test"
        )
    if isinstance(subject, contract):
        return
    suites = [name for kind, name in SUITES.items() if isinstance(subject, kind)]
    wanted = contract.__name__
    advice = suites[0] if suites else f"an instance of a class that derives from {wanted}"
    raise AssertionError(
        f"{subject!r:.80} was given, and this suite tests instances of {wanted}: use {advice}"
    )


@contextmanager
def on_problem(subject: object, problem: object) -> Iterator[None]:
    """Name the problem in every failure, and report other exceptions as failures too."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{error} The problem: {problem!r}.") from error
    except Exception as error:
        raise AssertionError(
            f"{type(subject).__name__} breaks a rule: it must work on every problem that its init "
            f"accepts, and it raised {type(error).__name__}: {error} "
            f"({subject!r:.{CHARACTERS}}). "
            f"The problem: {problem!r}."
        ) from error


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
    try:
        left, right = np.broadcast_arrays(np.asarray(found), np.asarray(expected))
    except ValueError:
        shapes = f"the shapes are {list(np.shape(found))} and {list(np.shape(expected))}"
        require(False, subject, f"{rule}; {shapes}")
    apart = ~np.isclose(left, right, rtol=rtol, atol=atol)
    if apart.any():
        _report(left, right, apart, subject, rule)


def require_at_most(found: Any, limit: Any, subject: object, rule: str) -> None:
    """Raise an AssertionError that names the number that exceeds its limit most, if any does."""
    left, right = np.broadcast_arrays(np.asarray(found), np.asarray(limit))
    above = ~(left <= right)
    if above.any():
        _report(left, right, above, subject, rule, "at most ")


def _report(left: Any, right: Any, wrong: Any, subject: object, rule: str, limit: str = "") -> None:
    with np.errstate(invalid="ignore"):
        distance = np.where(wrong, np.abs(left - right), -1.0)
    # A distance that is not a number is the largest.
    place = np.unravel_index(np.argmax(np.nan_to_num(distance, nan=np.inf)), distance.shape)
    where = f" at {[int(one) for one in place]}" if place else ""
    numbers = f"found {float(left[place]):.12g}, expected {limit}{float(right[place]):.12g}"
    require(False, subject, f"{rule}; {numbers}{where}")


def leaves(state: object) -> list[NDArray[Any]]:
    """Return every array in nested tuples, lists and mappings; other objects are left out.

    >>> len(leaves((np.zeros(2), {"deeper": [np.ones(3)]}, "no array")))
    2
    """
    if isinstance(state, np.ndarray):
        return [state]
    if isinstance(state, Mapping):
        return leaves(list(state.values()))
    if isinstance(state, tuple | list):
        return [array for part in state for array in leaves(part)]
    return []


def copied(state: object) -> list[NDArray[Any]]:
    """Return a copy of every array of a state, as the argument ``before`` of ``unchanged``."""
    return [array.copy() for array in leaves(state)]


def unchanged(before: list[NDArray[Any]], state: object) -> bool:
    """Return whether the arrays of a state equal the copies from before; NaN equals NaN."""
    after = leaves(state)
    return len(before) == len(after) and all(map(_equal, before, after))


def _equal(before: NDArray[Any], after: NDArray[Any]) -> bool:
    return np.array_equal(before, after, equal_nan=before.dtype.kind == "f")


SMALLEST_P_VALUE = 1e-9
"""What the suites accept: they make some thousand comparisons, and must pass for any seed."""
FEWEST_EXPECTED = 5.0
SHARES = (0.2, 0.4, 1.0)
"""Shares of the draws after which they are compared with the probabilities. The first share that
agrees well is enough."""
GOOD_P_VALUE = 0.2
"""Draws agree well with their probabilities if the p-value is above this."""


def goodness_of_fit(drawn: Integers, probabilities: Floats) -> float:
    """Compute the p-value of a χ² test for indices drawn from ``probabilities [M]``.

    χ² = 2 Σ_a n_a ln(n_a / (N p_a)), the likelihood ratio, with the rare indices counted as one.
    Pearson's form gives false alarms at such small p-values: 65 times too many where an index is
    expected five times. An index of probability 0 that was drawn gives 0.

    >>> goodness_of_fit(np.array([0, 1] * 50), np.array([0.5, 0.5, 0.0]))
    1.0
    >>> goodness_of_fit(np.array([2]), np.array([0.5, 0.5, 0.0]))
    0.0
    """
    counts = np.bincount(drawn.ravel(), minlength=len(probabilities))
    if np.any(counts[probabilities == 0] > 0):
        return 0.0
    observed, expected = _pooled(counts, probabilities * drawn.size)
    # Rounding can make the distance of equal frequencies negative.
    distance = max(0.0, 2 * float(np.sum(scipy.special.xlogy(observed, observed / expected))))
    return float(scipy.special.chdtrc(len(expected) - 1, distance)) if len(expected) > 1 else 1.0


def p_value_in_steps(draw: Callable[[], Integers], probabilities: Floats, most: int) -> float:
    """Compute `goodness_of_fit` of a share of ``most`` draws, and of more if it is not good.

    ``draw`` returns several indices. If the probabilities are right, four of five comparisons end
    after a fifth of the draws. If they are wrong, 1,500 draws in steps find out more than 1,200 at
    once: for example, three arms of probability 1/3 of which one is chosen 10 percentage points
    more often and another less often are found out with probability 0.997 instead of 0.993.
    """
    drawn: list[Integers] = []
    count, p_value = 0, 0.0
    for share in SHARES:
        while count < share * most:
            drawn.append(draw())
            count += drawn[-1].size
        p_value = goodness_of_fit(np.concatenate(drawn), probabilities)
        if p_value > GOOD_P_VALUE:
            break
    return p_value


def _pooled(counts: Integers, expected: Floats) -> tuple[Floats, Floats]:
    """Add up the smallest cells until the sum can be expected often enough."""
    order = np.argsort(expected)
    enough = np.searchsorted(np.cumsum(expected[order]), FEWEST_EXPECTED)
    first = min(int(enough), len(order) - 1) + 1
    rare, common = order[:first], order[first:]
    return (
        np.append(counts[common], counts[rare].sum()).astype(np.float64),
        np.append(expected[common], expected[rare].sum()),
    )
