"""A write that has been prepared, and the answer to its caller once it is durable."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from submax.core.errors import InputError
from submax.live.store.event import AppendResult, Entry

MAX_REQUESTS_PER_CALL = 1000
"""The most decisions or rewards in one call. They are written in one transaction, and a larger one
would keep other callers waiting."""
Answer = TypeVar("Answer")


class PendingWrite(NamedTuple, Generic[Answer]):
    """Entries to append to a stream, and a function from the append results to the ``answer``.

    The caller may wait for the append (``Bandit.write``) or await it (the server).
    """

    stream: str
    entries: list[Entry]
    answer: Callable[[list[AppendResult]], Answer]


def joined(writes: Sequence[PendingWrite[Answer]]) -> PendingWrite[list[Answer]]:
    """Several writes to the same stream as one, of which all are written or none."""
    if not 0 < len(writes) <= MAX_REQUESTS_PER_CALL:
        raise InputError(
            f"{len(writes)} requests were given in one call, and 1 to {MAX_REQUESTS_PER_CALL} are "
            "allowed: split them into several calls"
        )

    def answer(results: list[AppendResult]) -> list[Answer]:
        remaining = iter(results)
        return [write.answer([next(remaining) for _ in write.entries]) for write in writes]

    entries = [entry for write in writes for entry in write.entries]
    return PendingWrite(writes[0].stream, entries, answer)
