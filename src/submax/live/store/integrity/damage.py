"""Find damage in the events and blobs of a store."""

from collections.abc import Iterable, Iterator, Mapping

from submax.live.store.integrity.sealed_event import SealedEvent, checksum


def damaged_events(events: Iterable[SealedEvent], ends: Mapping[str, int]) -> Iterator[str]:
    """A sentence for every event that was changed, and for every gap or missing end of a stream.

    ``events`` are all events of a store in order of position, ``ends`` the last position that was
    written to each stream. Both must be read in one transaction.
    """
    last: dict[str, int] = {}
    for sealed in events:
        stream, position = sealed.stream, sealed.event.position
        if not sealed.whole:
            yield f"event {position} of {stream!r:.80} does not have the checksum of its writing"
        elif sealed.previous != last.get(stream, 0):
            yield (
                f"events of {stream!r:.80} are missing between the positions "
                f"{last.get(stream, 0)} and {position}"
            )
        last[stream] = position
    for stream in sorted({*ends, *last}, key=str):
        yield from _wrong_end(stream, last.get(stream, 0), ends.get(stream, 0))


def _wrong_end(stream: str, found: int, recorded: int) -> Iterator[str]:
    if found < recorded:
        yield (
            f"the end of {stream!r:.80} is missing: it was written up to position {recorded}, and "
            f"its last event is at {found}"
        )
    elif found > recorded:
        yield (
            f"the recorded end of {stream!r:.80} is damaged: it says {recorded}, and the last "
            f"event is at {found}"
        )


def damaged_blobs(blobs: Iterable[tuple[str, bytes, bytes]]) -> Iterator[str]:
    """A sentence for every blob that does not have its checksum; each is (name, data, checksum)."""
    for name, data, stored in blobs:
        if not isinstance(data, bytes) or checksum(_named(name, data)) != stored:
            yield f"the blob {name!r:.80} does not have the checksum of its writing"


def blob_checksum(name: str, data: bytes) -> bytes:
    """The checksum of a blob and its name."""
    return checksum(_named(name, data))


def _named(name: str, data: bytes) -> bytes:
    return str(name).encode("utf-8", "surrogateescape") + b"\0" + data
