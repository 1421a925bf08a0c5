"""How many decisions were taken more simply than asked."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from submax.core.fallback import Fallback


@contextmanager
def counted_fallbacks() -> Iterator[list[int]]:
    """Collect the decisions that each `Fallback` was about; other warnings pass as ever."""
    counts: list[int] = []
    told: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", Fallback)
            yield counts
    finally:
        for one in told:
            if isinstance(one.message, Fallback):
                counts.append(one.message.decisions)
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
