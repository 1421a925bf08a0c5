"""Something to be written, and the answer once it is."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from submax.core.errors import InputError
from submax.live.store.event import Entry, Written

MOST_AT_ONCE = 1000
"""Decisions or rewards in one call."""
Answer = TypeVar("Answer")


class Writing(NamedTuple, Generic[Answer]):
    """Entries for a stream; whoever writes them, waiting or not, makes the ``answer`` of them."""

    stream: str
    entries: list[Entry]
    answer: Callable[[list[Written]], Answer]


def joined(writings: Sequence[Writing[Answer]]) -> Writing[list[Answer]]:
    """Several as one, all written or none."""
    if not 0 < len(writings) <= MOST_AT_ONCE:
        raise InputError(f"there must be 1 to {MOST_AT_ONCE} in one call, not {len(writings)}")

    def answer(written: list[Written]) -> list[Answer]:
        rest = iter(written)
        return [one.answer([next(rest) for _ in one.entries]) for one in writings]

    entries = [entry for one in writings for entry in one.entries]
    return Writing(writings[0].stream, entries, answer)
