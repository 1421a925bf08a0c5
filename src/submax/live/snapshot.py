"""A ledger on disk, so that opening need not read the whole log."""

import hashlib
from typing import Any

import msgspec

from submax.core.errors import InvalidValue
from submax.live.ledger import Ledger
from submax.live.log_clock import LogClock
from submax.live.store import Store
from submax.networks.state_file import read_state, state_bytes
from submax.schema.columns import Columns


class Snapshot(msgspec.Struct, frozen=True):
    """All that a ledger knows; the hashes are those of its full segments and of its last rows."""

    heard: int
    settled: int
    clock: tuple[float, float | None]
    settled_clock: tuple[float, float | None]
    rewards: dict[str, float]
    activated: set[str]
    waiting: dict[str, float]
    counts: dict[str, int]
    segments: list[str]
    last: bytes


def write_snapshot(store: Store, name: str, ledger: Ledger) -> None:
    """Keep what the ledger knows; full segments, which never change, are written once."""
    segments = []
    for number, columns in enumerate(ledger.rows.full):
        if number >= ledger.segments_kept:
            store.keep(f"{name}/rows/{number}", state_bytes(columns, {}))
        segments.append(columns.hash)
    ledger.segments_kept = len(segments)
    snapshot = Snapshot(
        ledger.heard,
        ledger.settled,
        (ledger.clock.elapsed, ledger.clock.last),
        (ledger.settled_clock.elapsed, ledger.settled_clock.last),
        ledger.rewards,
        ledger.activated,
        ledger.waiting,
        dict(ledger.counts),
        segments,
        state_bytes(ledger.rows.last, {}),
    )
    data = msgspec.msgpack.encode(snapshot)
    store.keep(f"{name}/snapshot", hashlib.sha256(data).digest() + data)


def read_snapshot(store: Store, name: str, ledger: Ledger) -> bool:
    """Put a new ledger where the snapshot was; False where there is none, or it is damaged."""
    kept = store.kept(f"{name}/snapshot")
    if kept is None or hashlib.sha256(kept[32:]).digest() != kept[:32]:
        return False
    try:
        snapshot = msgspec.msgpack.decode(kept[32:], type=Snapshot)
        full = [
            _segment(store, name, number, digest) for number, digest in enumerate(snapshot.segments)
        ]
        last = _columns(snapshot.last)
    except (InvalidValue, msgspec.DecodeError):
        return False
    ledger.rows.full, ledger.rows.last = full, last
    ledger.segments_kept = len(full)
    ledger.heard, ledger.settled = snapshot.heard, snapshot.settled
    ledger.clock, ledger.settled_clock = (
        LogClock(*snapshot.clock),
        LogClock(*snapshot.settled_clock),
    )
    ledger.rewards, ledger.activated = snapshot.rewards, snapshot.activated
    ledger.waiting = snapshot.waiting
    ledger.counts.update(snapshot.counts)
    return True


def _segment(store: Store, name: str, number: int, digest: str) -> Columns:
    data = store.kept(f"{name}/rows/{number}")
    columns = None if data is None else _columns(data)
    if columns is None or columns.hash != digest:
        raise InvalidValue(f"segment {number} of the rows of {name} is missing or damaged")
    return columns


def _columns(data: bytes) -> Columns:
    columns: Any = read_state(data)[0]
    if not isinstance(columns, Columns):
        raise InvalidValue("these are no rows")
    return columns
