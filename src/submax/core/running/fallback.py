"""Warnings about decisions that a policy could not take as configured."""

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
_shared: ContextVar[int] = ContextVar("shared", default=1)


def fall_back(kind: type[FallbackWarning], message: str, decisions: int) -> None:
    """Report a fallback: add it to the count inside ``counted_fallbacks``, else warn."""
    decisions *= _shared.get()
    counts = _counts.get()
    if counts is not None:
        counts.append(decisions)
        return
    warnings.warn(kind(message, decisions), stacklevel=3)


class counted_fallbacks:  # noqa: N801 - used as a function; a generator would cost more
    """Collect the number of decisions of each fallback in the block, instead of warning."""

    def __enter__(self) -> list[int]:
        counts: list[int] = []
        self._token = _counts.set(counts)
        return counts

    def __exit__(self, *_: object) -> None:
        _counts.reset(self._token)


@contextmanager
def standing_for(decisions: int) -> Iterator[None]:
    """Multiply every fallback in the block: one solution is used for this many decisions."""
    token = _shared.set(decisions)
    try:
        yield
    finally:
        _shared.reset(token)
