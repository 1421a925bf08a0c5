"""Reports of fallbacks: decisions that a policy could not take as configured."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self


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
    """Report that a simpler rule was used for this many decisions.

    Inside ``counted_fallbacks`` the number is appended to its list; elsewhere a warning of this
    kind is issued. Inside ``standing_for`` the number is multiplied.
    """
    decisions *= _multiplier.get()
    counts = _counts.get()
    if counts is not None:
        counts.append(decisions)
        return
    warnings.warn(kind(message, decisions), stacklevel=3)


class counted_fallbacks:  # noqa: N801 - used as a function; a generator would cost more
    """Collect fallbacks instead of warning, as in ``with counted_fallbacks() as counts``.

    ``counts`` is a list with the number of decisions of each fallback that the block reports.
    """

    def __enter__(self) -> list[int]:
        counts: list[int] = []
        self._token = _counts.set(counts)
        return counts

    def __exit__(self, *_: object) -> None:
        _counts.reset(self._token)


@contextmanager
def standing_for(decisions: int) -> Iterator[None]:
    """Multiply the number of decisions of every fallback in the block.

    The block computes probabilities once, and this many decisions will use them. Of nested blocks
    only the innermost one counts.
    """
    token = _multiplier.set(decisions)
    try:
        yield
    finally:
        _multiplier.reset(token)
