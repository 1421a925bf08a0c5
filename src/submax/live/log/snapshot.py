"""Snapshots of a ledger in the store, so that opening a bandit need not read the whole log."""

import hashlib
from collections.abc import Callable
from typing import Any, Self

import msgspec

from submax.bandit.lift import GroupComparison
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.serialization import read_state, state_bytes
from submax.live.archive.derived_rows import DerivedRows
from submax.live.log.action_tally import ActionTally
from submax.live.log.collecting.position_set import PositionSet
from submax.live.log.collecting.quarantine import WaitingReward
from submax.live.log.ledger import Ledger
from submax.live.log.log_clock import LogClock
from submax.live.log.rows.row_segments import StoredSegments
from submax.live.monitoring.rollups.rollups import Rollups, RollupsRecord
from submax.live.store.store import Store
from submax.schema.rows import Columns


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a ledger, with the hashes of its full segments of rows instead of the rows.

    ``rewards``, ``parts`` and ``activated`` are by position, ``early``, ``early_parts`` and
    ``waiting`` by the ids of unknown decisions. ``last`` are the rows after the full segments.
    ``closed`` is the base and the bits of the set of closed positions.
    """

    read_position: int
    settled: int
    clock: tuple[float, float | None]
    settled_clock: tuple[float, float | None]
    rewards: dict[int, float]
    activated: list[int]
    early: dict[str, float]
    waiting: dict[str, WaitingReward]
    counts: dict[str, int]
    segments: list[str]
    last: bytes
    closed: tuple[int, bytes]
    tally: ActionTally
    comparisons: dict[str, GroupComparison]
    parts: dict[int, dict[str, float]]
    early_parts: dict[str, dict[str, float]]
    rollups: RollupsRecord

    @classmethod
    def of(cls, ledger: Ledger) -> Self:
        """The snapshot of a ledger now; it does not depend on how the log was read."""
        collected, settled_clock = ledger.collected, ledger.second.clock
        return cls(
            ledger.read_position,
            ledger.settled,
            (ledger.clock.elapsed, ledger.clock.last),
            (settled_clock.elapsed, settled_clock.last),
            dict(sorted(collected.given.values.items())),
            sorted(collected.activated),
            collected.early.values,
            collected.early.quarantine.items(),
            dict(sorted(ledger.counts.items())),
            ledger.rows.segments.hashes,
            state_bytes(ledger.rows.last, {}),
            (collected.closed.base, collected.closed.bits),
            ledger.tally,
            ledger.comparisons.by_group,
            dict(sorted(collected.given.parts.items())),
            collected.early.given.parts,
            ledger.rollups.to_record(),
        )

    def restore(self, ledger: Ledger) -> None:
        """Give a new ledger the state of the snapshot, except for its full segments of rows."""
        collected, second = ledger.collected, ledger.second
        ledger.rows.last = _columns(self.last)
        ledger.read_position, ledger.clock = self.read_position, LogClock(*self.clock)
        second.settled, second.clock = self.settled, LogClock(*self.settled_clock)
        collected.activated = set(self.activated)
        collected.restore_rewards(self.rewards, self.parts)
        collected.restore_early(self.early, self.early_parts, self.waiting)
        collected.closed = PositionSet(*self.closed)
        ledger.counts.update(self.counts)
        ledger.tally = self.tally
        ledger.comparisons.by_group.update(self.comparisons)
        ledger.rollups = Rollups.restore(self.rollups)


def snapshot_name(name: str) -> str:
    """The name of the blob with the snapshot of a bandit."""
    return f"{name}/snapshot"


def write_snapshot(store: Store, name: str, ledger: Ledger) -> None:
    """Write a snapshot; the full segments of rows are in the store already."""
    data = msgspec.msgpack.encode(Snapshot.of(ledger))
    store.put_blob(snapshot_name(name), hashlib.sha256(data).digest() + data)


def read_snapshot(
    store: Store, name: str, ledger: Ledger, leads: Callable[[], bool] | None = None
) -> bool:
    """Give a new ledger the state of the snapshot; False if there is none, or it is damaged.

    The full segments of rows are read when they are needed; for ``leads`` see ``StoredSegments``.
    """
    snapshot = _read(store, name)
    if snapshot is None:
        return False
    try:
        snapshot.restore(ledger)
    except InputError:
        return False
    derived = DerivedRows(store, name, ledger.settings)
    ledger.rows.segments = StoredSegments(store, name, snapshot.segments, leads, derived)
    return True


def read_rollups(store: Store, name: str) -> Rollups | None:
    """The rollups of the last snapshot of a bandit; None if there is none, or it is damaged."""
    snapshot = _read(store, name)
    return None if snapshot is None else Rollups.restore(snapshot.rollups)


def _read(store: Store, name: str) -> Snapshot | None:
    data = store.get_blob(snapshot_name(name))
    if data is None or hashlib.sha256(data[32:]).digest() != data[:32]:
        return None
    try:
        return msgspec.msgpack.decode(data[32:], type=known_type(Snapshot))
    except msgspec.DecodeError:
        return None


def _columns(data: bytes) -> Columns:
    columns: Any = read_state(data)[0]
    if not isinstance(columns, Columns):
        raise InputError("these are no rows")
    return columns
