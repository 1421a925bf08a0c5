"""Reads events from a segment."""

import hashlib
import sys
from bisect import bisect_left
from typing import Any

import msgspec

from submax.bandit.assignment import ExperimentAssignment
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.live.archive.archived_page import archived_page
from submax.live.archive.segments.archived_segment import ArchivedSegment
from submax.live.archive.segments.event_forms import (
    all_floats,
    float_of,
    keys_of,
    listed_probability,
)
from submax.live.archive.segments.id_halves import halves_of, identifier_from
from submax.live.archive.segments.segment_schema import ACTION, CONTEXT
from submax.live.log.pages.log_page import LogPage
from submax.live.log.records import DECISION, REWARD, DecisionMade, RewardGiven, identifier_of
from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.event import Event
from submax.schema.actions import ChoiceIndices

ENCODER = msgspec.msgpack.Encoder()
Columns = dict[str, list[Any]]
ID_COLUMNS = ["id", "id_high", "id_low"]


class SegmentReader:
    """The events of a segment, page by page, as they were given to the ``SegmentWriter``.

    All of it is read by the calling thread. Arrow's own threads would not be faster for pages of
    this size, would take processors from decisions, and each would keep memory of its own.
    """

    def __init__(self, data: bytes) -> None:
        require_extra("logs", "reading archived events", "pyarrow")
        import pyarrow as pa
        import pyarrow.parquet as pq

        # What this thread has read of earlier segments is no longer in use.
        give_back_memory()
        self._file: Any = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        self.pages: int = self._file.num_row_groups
        names = self._file.schema_arrow.names
        self._actions = [name for name in names if name.startswith(ACTION)]
        self._contexts = [name for name in names if name.startswith(CONTEXT)]
        self._eligible: dict[bytes, ChoiceIndices] = {}
        self._ends: list[int] = []

    @classmethod
    def of(cls, data: bytes | None, segment: ArchivedSegment, where: str) -> "SegmentReader":
        """Open the data of a segment; an ``InputError`` if they are not those that were written.

        ``where`` names the segment in the error.
        """
        if data is None or hashlib.sha256(data).hexdigest() != segment.hash:
            state = "missing" if data is None else "damaged"
            raise InputError(
                f"{where} is {state}, and its events are nowhere else: put it back from a backup, "
                "with the folder that lies beside the file of the store"
            )
        return cls(data)

    @property
    def ends(self) -> list[int]:
        """The position of the last event of each page."""
        if not self._ends:
            self._ends = [self._positions(page)[-1] for page in range(self.pages)]
        return self._ends

    def positions(self) -> list[int]:
        """The positions of all events."""
        return [position for page in range(self.pages) for position in self._positions(page)]

    def _positions(self, page: int) -> list[int]:
        positions: list[int] = self.table(page, ["position"])["position"].to_pylist()
        return positions

    def decision_ids(self) -> Any:
        """The ids of the decisions, as a table of the columns ``id``, ``id_high`` and ``id_low``.

        Decisions with keys of another form are left out.
        """
        import pyarrow.compute as pc

        table = self._whole(["kind", *ID_COLUMNS])
        known = pc.or_(table["id"].is_valid(), table["id_high"].is_valid())
        chosen = pc.and_(pc.equal(table["kind"], DECISION), known)
        return table.filter(chosen).select(ID_COLUMNS).combine_chunks()

    def position_of(self, identifier: str) -> int | None:
        """The position of the decision with this id; None if the segment does not have it."""
        import pyarrow.compute as pc

        table, halves = self._whole(["kind", "position", *ID_COLUMNS]), halves_of(identifier)
        same = pc.equal(table["id"], identifier)
        if halves is not None:
            by_halves = [
                pc.equal(table[name], half)
                for name, half in zip(("id_high", "id_low"), halves, strict=True)
            ]
            same = pc.or_(pc.fill_null(same, False), pc.fill_null(pc.and_(*by_halves), False))
        found = table.filter(pc.and_(pc.equal(table["kind"], DECISION), same))["position"]
        return found[0].as_py() if len(found) else None

    def page_after(self, position: int) -> int:
        """The number of the page with the first event after a position."""
        return bisect_left(self.ends, position + 1)

    def page(self, number: int) -> list[Event]:
        """All events of a page."""
        table = self.table(number)
        columns: Columns = {name: table[name].to_pylist() for name in table.column_names}
        positions = columns["position"]
        times = all_floats(columns["time"])
        events: list[Event] = []
        by_position: dict[int, Event] = {}
        for row, (position, kind) in enumerate(zip(positions, columns["kind"], strict=True)):
            back = columns["back"][row]
            about_position = 0 if back is None else position - back
            decision = by_position.get(about_position)
            key, about = _keys(columns, row, kind, decision)
            bits = columns["about_time"][row]
            if bits is not None:
                about_at = float_of(bits)
            else:
                about_at = 0.0 if decision is None else decision.at
            body = self._body(columns, row, kind)
            event = Event(position, times[row], kind, key, about, about_position, about_at, body)
            events.append(event)
            if kind == DECISION:
                by_position[position] = event
        return events

    def table(self, number: int, columns: list[str] | None = None) -> Any:
        """A page as a table with the columns of a segment, or with some of them."""
        return self._file.read_row_group(number, columns, use_threads=False)

    def events_of_page(self, number: int) -> int:
        """The number of events of a page."""
        return int(self._file.metadata.row_group(number).num_rows)

    def log_page(self, number: int) -> LogPage:
        """The same events as ``page``, by columns."""
        found = archived_page(self.table(number))
        return LogPage.of(EventColumns.of(self.page(number))) if found is None else found

    def _whole(self, columns: list[str]) -> Any:
        """Some columns of all pages, as one table."""
        return self._file.read(columns, use_threads=False)

    def _body(self, columns: Columns, row: int, kind: str) -> bytes:
        body = columns["body"][row]
        if body is not None:
            return bytes(body)
        if kind == DECISION:
            return ENCODER.encode(self._decision(columns, row))
        if kind == REWARD:
            return ENCODER.encode(RewardGiven(columns["value"][row], columns["source"][row]))
        return b""

    def _decision(self, columns: Columns, row: int) -> DecisionMade:
        action = [columns[name][row] for name in self._actions]
        eligible = self._decoded(columns["eligible"][row])
        probabilities = columns["probabilities"][row]
        propensity = columns["propensity"][row]
        if propensity is None:
            propensity = listed_probability(action, eligible, probabilities)
        return DecisionMade(
            action,
            propensity,
            columns["version"][row],
            [columns[name][row] for name in self._contexts],
            eligible,
            probabilities,
            columns["activated"][row],
            columns["holdout"][row],
            columns["unit"][row],
            _group(columns, row),
            columns["paused"][row],
        )

    def _decoded(self, eligible: bytes) -> ChoiceIndices:
        """The eligible choices, decoded once for each of the few different values."""
        if eligible not in self._eligible:
            decoded = msgspec.msgpack.decode(eligible, type=known_type(ChoiceIndices))
            self._eligible[eligible] = decoded
        return self._eligible[eligible]


def give_back_memory() -> None:
    """Give the system the memory back that this thread has used for segments and no longer needs.

    Arrow's allocator keeps freed memory for each thread, and only that thread can give it back.
    """
    # Nothing was read if Arrow was not imported; it may not even be installed.
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()


def _group(columns: Columns, row: int) -> ExperimentAssignment | None:
    """The group of a decision; None if it has none."""
    since = columns["group_since"][row]
    if since is None:
        return None
    shares = columns["holdout_share"][row], columns["control_share"][row]
    return ExperimentAssignment(since, columns["group"][row], *shares)


def _keys(
    columns: Columns, row: int, kind: str, decision: Event | None
) -> tuple[str | None, str | None]:
    """The key of an event, and that of the event it is about."""
    if columns["irregular"][row]:
        return columns["key"][row], columns["about"][row]
    identifier = columns["id"][row]
    if columns["id_high"][row] is not None:
        identifier = identifier_from(columns["id_high"][row], columns["id_low"][row])
    elif identifier is None and decision is not None:
        identifier = identifier_of(decision.key or "")
    return keys_of(kind, identifier, columns["reward_key"][row])
