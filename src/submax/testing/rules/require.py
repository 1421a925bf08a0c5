"""How a conformance suite reports what is wrong."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.strategy import Strategy
from submax.core.contracts.environment import Environment
from submax.core.contracts.policy import Policy
from submax.core.rewards.scale import Scale

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
