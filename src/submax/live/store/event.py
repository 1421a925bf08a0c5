"""Entries that are given to a store, and the events that they become."""

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """Something to be appended to a stream.

    ``key`` is unique within the stream, or None. ``about`` is the key of an earlier entry that this
    one refers to, such as the decision that a reward belongs to.
    """

    kind: str
    body: bytes
    key: str | None = None
    about: str | None = None


class Event(msgspec.Struct, frozen=True):
    """An entry that was written, with its position in the stream.

    ``at`` is the store's time in seconds since the epoch. ``about_position`` and ``about_at`` are
    the position and the time of the entry that this one is about; both are 0 if that entry did not
    exist when this one was written.
    """

    position: int
    at: float
    kind: str
    key: str | None
    about: str | None
    about_position: int
    about_at: float
    body: bytes


class AppendResult(msgspec.Struct, frozen=True):
    """The event under an entry's key: the entry itself (``new``), or one written before it."""

    event: Event
    new: bool
