"""One of several requests that are sent together."""

from typing import Any, NamedTuple, Protocol


class Promise(Protocol):
    """What a caller waits for: a future of a thread or of an event loop."""

    def done(self) -> bool:
        """Whether there is an answer, or nobody waits any more."""
        ...

    def set_result(self, result: Any, /) -> None:
        """Answer the caller."""
        ...

    def set_exception(self, error: Any, /) -> None:
        """Let the caller's call fail."""
        ...


class Item(NamedTuple):
    """A request with its encoded body, its deadline, and the future of its caller."""

    body: bytes
    until: float | None
    promise: Promise


def settle(item: Item, outcome: Any) -> None:
    """Give a caller its answer, or its error."""
    if item.promise.done():
        return
    if isinstance(outcome, BaseException):
        item.promise.set_exception(outcome)
    else:
        item.promise.set_result(outcome)
