"""How a conformance suite reports what is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager


def require(condition: object, subject: object, rule: str) -> None:
    """Raise an AssertionError that names the class and the broken rule."""
    if not condition:
        raise AssertionError(f"{type(subject).__name__} breaks a rule: {rule} ({subject!r}).")


def require_instance(subject: object) -> None:
    """Raise an AssertionError if a class was given instead of an instance."""
    if isinstance(subject, type):
        raise AssertionError(
            f"the class {subject.__name__} was given, and the suite tests an instance: "
            f"give {subject.__name__}(...), with the parameters to test"
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
            f"accepts, and it raised {type(error).__name__}: {error} ({subject!r}). "
            f"The problem: {problem!r}."
        ) from error
