"""How a conformance suite reports what is wrong."""

import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.conditioning import Estimator, Strategy
from submax.core.environment import Environment
from submax.core.policy import Policy

SUITES: dict[type, str] = {
    Policy: "check_policy",
    Estimator: "check_estimator",
    Strategy: "check_strategy",
    Environment: "check_environment",
}
"""The suite for each contract."""
CHARACTERS = 1000
"""How much of an object is shown: a store in memory may hold megabytes."""


class Rules:
    """What an object must keep."""

    def __init__(self, subject: Any, contract: type = object) -> None:
        if isinstance(subject, type):
            raise AssertionError(
                f"the class {subject.__name__} is a class, but the suite tests an instance: "
                f"give {subject.__name__}(...), with the parameters to test"
            )
        if not isinstance(subject, contract):
            suites = [name for kind, name in SUITES.items() if isinstance(subject, kind)]
            wanted = contract.__name__
            advice = suites[0] if suites else f"an instance of a class that derives from {wanted}"
            raise AssertionError(
                f"{subject!r:.80} was given, but this suite tests instances of {wanted}: "
                f"use {advice}"
            )
        self.subject: Any = subject

    def require(self, condition: object, rule: str) -> None:
        """Raise an AssertionError that names the class and the broken rule."""
        if not condition:
            kind = type(self.subject).__name__
            raise AssertionError(f"{kind} breaks a rule: {rule} ({self.subject!r:.{CHARACTERS}}).")

    def shape(self, found: Any, axes: str, sizes: tuple[int, ...], what: str) -> None:
        """Require an array of these ``sizes``; ``axes`` are their letters, see the glossary."""
        shape = getattr(found, "shape", type(found).__name__)
        rule = f"{what} must have shape [{axes}] = {list(sizes)}, not {shape}"
        self.require(shape == sizes, rule)

    def close(
        self, found: Any, expected: Any, rule: str, rtol: float = 1e-9, atol: float = 1e-12
    ) -> None:
        """Require numbers that agree as by ``numpy.isclose``, and name the two that differ most."""
        left, right = np.broadcast_arrays(found, expected)
        self._report(left, right, ~np.isclose(left, right, rtol=rtol, atol=atol), rule)

    def at_most(self, found: Any, limit: Any, rule: str) -> None:
        """Require numbers up to a limit, and name the one that exceeds its limit most."""
        left, right = np.broadcast_arrays(found, limit)
        self._report(left, right, ~(left <= right), rule, "at most ")

    def equal_copy(self) -> None:
        """Require that the pickled copy of the object is equal to it."""
        try:
            restored = pickle.loads(pickle.dumps(self.subject))
        except Exception as error:
            self.require(
                False,
                "it must be possible to pickle it, for simulations in several processes, and "
                f"pickle says: {error}; define its class in a module, and keep only plain values, "
                "dataclasses and arrays in its fields",
            )
        self.require(restored == self.subject, "it must be equal to its pickled copy")

    @contextmanager
    def on(self, problem: object) -> Iterator[None]:
        """Name the problem in every failure, and report other exceptions as failures too."""
        try:
            yield
        except AssertionError as error:
            raise AssertionError(f"{error} The problem: {problem!r}.") from error
        except Exception as error:
            raise AssertionError(
                f"{type(self.subject).__name__} breaks a rule: it must work on every problem that "
                f"its init accepts, and it raised {type(error).__name__}: {error} "
                f"({self.subject!r:.{CHARACTERS}}). The problem: {problem!r}."
            ) from error

    def _report(self, left: Any, right: Any, wrong: Any, rule: str, limit: str = "") -> None:
        if not wrong.any():
            return
        with np.errstate(invalid="ignore"):
            distance = np.where(wrong, np.abs(left - right), -1.0)
        # A distance that is not a number is the largest.
        place = np.unravel_index(np.argmax(np.nan_to_num(distance, nan=np.inf)), distance.shape)
        where = f" at {[int(one) for one in place]}" if place else ""
        numbers = f"found {float(left[place]):.12g}, expected {limit}{float(right[place]):.12g}"
        self.require(False, f"{rule}; {numbers}{where}")


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


def contents(state: object) -> list[bytes]:
    """Return the numbers of every array of a state, to see whether they change."""
    return [array.tobytes() for array in leaves(state)]


SMALLEST_P_VALUE = 1e-9
"""What the suites accept: they make some thousand comparisons, and must pass for any seed."""
FEWEST_EXPECTED = 5.0


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
    expected = probabilities * drawn.size
    # The smallest cells are added up until their sum can be expected often enough.
    order = np.argsort(expected)
    enough = np.searchsorted(np.cumsum(expected[order]), FEWEST_EXPECTED)
    first = min(int(enough), len(order) - 1) + 1
    observed, expected = (
        np.append(cells[order[first:]], cells[order[:first]].sum()) for cells in (counts, expected)
    )
    # Rounding can make the distance of equal frequencies negative.
    distance = max(0.0, 2 * float(np.sum(scipy.special.xlogy(observed, observed / expected))))
    return float(scipy.special.chdtrc(len(expected) - 1, distance)) if len(expected) > 1 else 1.0
