"""Events by columns, from their records one after the other."""

from submax.live.store.columns.event_columns import NO_EVENTS, EventColumns
from submax.live.store.columns.event_kinds import (
    ACTIVATION_KIND,
    DECISION_KIND,
    KINDS,
    OTHER_KIND,
    REWARD_KIND,
)
from submax.live.store.columns.sealed_columns import SealedColumns
from submax.live.store.sqlite_format.event_record import ABOUT_OF_KEY, HAS_ABOUT_TEXT, HAS_KEY
from submax.live.store.sqlite_format.event_row import damaged_record, event_of
from submax.live.store.sqlite_format.record_checksums import whole_records
from submax.live.store.sqlite_format.record_keys import RecordKeys
from submax.live.store.sqlite_format.record_table import RecordTable


def columns_of(data: bytes | None) -> EventColumns:
    """Return the events whose records are in ``data``; an ``InputError`` if one is damaged.

    Python makes no object for any of them: numpy reads each field of all records at once.
    """
    return _columns(_table(data)) if data else NO_EVENTS


def sealed_columns_of(stream: str, data: bytes | None) -> SealedColumns:
    """Return the same events, and whether each has the checksum of its values."""
    if not data:
        return SealedColumns.of([])
    table = _table(data)
    return SealedColumns(
        _columns(table),
        table.about_at,
        table.previous,
        whole_records(stream, table),
        lambda: [event_of(table.record(place)) for place in range(len(table))],
    )


def _table(data: bytes) -> RecordTable:
    try:
        return RecordTable.of(data)
    except (IndexError, ValueError) as error:
        raise damaged_record(error) from error


def _columns(table: RecordTable) -> EventColumns:
    kind, flags = table.kind.copy(), table.flags
    kind[kind >= len(KINDS)] = OTHER_KIND
    kind[(kind == DECISION_KIND) & ((flags & HAS_KEY) == 0)] = OTHER_KIND
    feedback = (kind == REWARD_KIND) | (kind == ACTIVATION_KIND)
    kind[feedback & ((flags & (HAS_ABOUT_TEXT | ABOUT_OF_KEY)) == 0)] = OTHER_KIND
    keys = RecordKeys(table.key, flags, table.about)
    return EventColumns(table.position, table.at, kind, keys, table.about_position, table.body)
