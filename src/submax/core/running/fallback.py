"""Decisions that could not be taken as asked, and were taken more simply."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self


class FallbackWarning(UserWarning):
    """Says what was done instead, and for how many ``decisions``."""

    def __init__(self, message: str, decisions: int) -> None:
        super().__init__(message)
        self.decisions = decisions

    def __reduce__(self) -> tuple[type[Self], tuple[str, int]]:
        # An exception is pickled by its message alone, and could not be made again from that.
        return type(self), (str(self), self.decisions)


_counts: ContextVar[list[int] | None] = ContextVar("counts", default=None)
_shared: ContextVar[int] = ContextVar("shared", default=1)


def fall_back(kind: type[FallbackWarning], message: str, decisions: int) -> None:
    """Count where someone counts, else warn."""
    decisions *= _shared.get()
    counts = _counts.get()
    if counts is not None:
        counts.append(decisions)
        return
    warnings.warn(kind(message, decisions), stacklevel=3)


class counted_fallbacks:  # noqa: N801 - used as a function; a generator would cost more
    """Collect how many decisions each fallback within was about, in place of its warning."""

    def __enter__(self) -> list[int]:
        counts: list[int] = []
        self._token = _counts.set(counts)
        return counts

    def __exit__(self, *_: object) -> None:
        _counts.reset(self._token)


@contextmanager
def standing_for(decisions: int) -> Iterator[None]:
    """Let each fallback within stand for so many decisions, which share what was solved once."""
    token = _shared.set(decisions)
    try:
        yield
    finally:
        _shared.reset(token)
