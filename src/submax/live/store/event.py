"""What a store keeps: entries that were written, in order."""

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """Something to be written; ``key`` is unique in its stream, ``about`` is the key of another."""

    kind: str
    body: bytes
    key: str | None = None
    about: str | None = None


class Event(msgspec.Struct, frozen=True):
    """An entry in its place.

    ``at`` is the store's time in seconds since the epoch. ``about_position`` and ``about_at`` are
    where and when the entry it is about was written, 0 where it had not been.
    """

    position: int
    at: float
    kind: str
    key: str | None
    about: str | None
    about_position: int
    about_at: float
    body: bytes


class Written(msgspec.Struct, frozen=True):
    """The event that stands under an entry's key: this entry (``new``), or an earlier one."""

    event: Event
    new: bool
