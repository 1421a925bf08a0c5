"""Decisions that could not be taken as asked, and were taken more simply."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class Fallback(UserWarning):
    """Says what was done instead, and for how many ``decisions``."""

    def __init__(self, message: str, decisions: int) -> None:
        super().__init__(message)
        self.decisions = decisions

    def __reduce__(self) -> tuple[type[Self], tuple[str, int]]:
        # An exception is pickled by its message alone, and could not be made again from that.
        return type(self), (str(self), self.decisions)


@contextmanager
def standing_for(decisions: int) -> Iterator[None]:
    """Let each fallback within stand for so many decisions that share what was solved once."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", Fallback)
        yield
    for one in told:
        message = one.message
        if isinstance(message, Fallback):
            message = type(message)(str(message), message.decisions * decisions)
        warnings.warn_explicit(message, one.category, one.filename, one.lineno)
