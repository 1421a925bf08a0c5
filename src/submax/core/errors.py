"""The errors that submax raises on purpose, and its warnings."""

import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar, Self


class Error(Exception):
    """Base class of all errors that submax raises on purpose.

    The message is one sentence for people. Programs use the ``code``, which stays the same if the
    wording of the message changes, and the ``parameter``: the argument, setting or field that was
    refused, or None if no single one is to blame.
    """

    default_code: ClassVar[str] = "error"

    def __init__(
        self, message: str = "", *, code: str | None = None, parameter: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.parameter = parameter


class InputError(Error, ValueError):
    """A given value is not allowed. Nothing was changed."""

    default_code = "invalid-input"


class NotFoundError(InputError):
    """The requested object does not exist."""

    default_code = "not-found"


class ConflictError(InputError):
    """Another value is already stored under the same key. Nothing was changed."""

    default_code = "conflict"


class ForbiddenError(InputError):
    """The API key is missing, unknown, or does not permit the request."""

    default_code = "forbidden"


class StoreError(Error, RuntimeError):
    """The store cannot be reached now. Nothing was acknowledged, so the call can be repeated."""

    default_code = "store-unavailable"


class MissingExtraError(Error, ImportError):
    """An optional dependency is not installed. The message names the extra to install."""

    default_code = "missing-extra"


def one_line(error: BaseException) -> str:
    """Describe an error raised by foreign code in one line: its type, message and location.

    >>> one_line(ValueError("no such colour"))
    'ValueError: no such colour'
    """
    kind = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return kind
    # Frames of Python's import machinery do not show where the mistake is.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen importlib")
    ]
    if not frames or frames[-1].filename.endswith("importlib/__init__.py"):
        return kind
    return f"{kind} ({frames[-1].filename}, line {frames[-1].lineno})"


class ContextIgnoredWarning(UserWarning):
    """The policy ignores the context that is given for every decision."""


@contextmanager
def ignored_contexts_allowed() -> Iterator[None]:
    """Do not warn of policies that ignore the context: the caller has chosen them on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextIgnoredWarning)
        yield


class DivergedWarning(UserWarning):
    """The loss of a network became infinite or NaN during training."""


def warn_of_divergence(step: Iterable[int]) -> None:
    """Warn about every replica that diverged, at ``step [R]``; −1 means that it did not."""
    for replica, diverged in enumerate(step):
        if diverged >= 0:
            warnings.warn(
                f"the loss of replica {replica} was not finite at step {diverged}; "
                "it keeps its last good parameters",
                DivergedWarning,
                stacklevel=3,
            )


class FallbackWarning(UserWarning):
    """A simpler rule was used for this many ``decisions``; the message names the rule."""

    def __init__(self, message: str, decisions: int) -> None:
        super().__init__(message)
        self.decisions = decisions

    def __reduce__(self) -> tuple[type[Self], tuple[str, int]]:
        # By default an exception is pickled with its message only, without the decisions.
        return type(self), (str(self), self.decisions)


_counts: ContextVar[list[int] | None] = ContextVar("counts", default=None)
_multiplier: ContextVar[int] = ContextVar("multiplier", default=1)


def fall_back(kind: type[FallbackWarning], message: str, decisions: int) -> None:
    """Report that a simpler rule was used for so many decisions, by a warning of this kind.

    Inside ``counted_fallbacks`` the number is appended to its list instead.
    """
    decisions *= _multiplier.get()
    counts = _counts.get()
    if counts is not None:
        counts.append(decisions)
        return
    warnings.warn(kind(message, decisions), stacklevel=3)


class counted_fallbacks:  # noqa: N801 - used as a function; a generator would cost more
    """Collect the decisions of each fallback in ``with counted_fallbacks() as counts``."""

    def __enter__(self) -> list[int]:
        counts: list[int] = []
        self._token = _counts.set(counts)
        return counts

    def __exit__(self, *_: object) -> None:
        _counts.reset(self._token)


@contextmanager
def standing_for(decisions: int) -> Iterator[None]:
    """Multiply the decisions of every fallback in the block, whose result so many will use."""
    token = _multiplier.set(decisions)
    try:
        yield
    finally:
        _multiplier.reset(token)
