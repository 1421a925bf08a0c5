"""Writes events into a segment."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import msgspec

from submax.bandit.assignment import ExperimentAssignment
from submax.bandit.settings import Settings
from submax.core.errors import InputError
from submax.live.archive.page_table import page_tables
from submax.live.archive.segments.event_forms import (
    all_bits,
    bits_of,
    keys_of,
    listed_probability,
    parts_of,
)
from submax.live.archive.segments.id_halves import halves_of
from submax.live.archive.segments.segment_schema import (
    ACTION,
    CONTEXT,
    segment_schema,
    writer_options,
)
from submax.live.log.records import DECISION, REWARD, Body, DecisionMade, RewardGiven, body_of
from submax.live.store.columns.sealed_columns import SealedColumns
from submax.live.store.event import Event

ENCODER = msgspec.msgpack.Encoder()
LIMIT = 2**63
"""Columns can hold integers below this one; MessagePack has larger ones."""
Column = list[Any]


class SegmentWriter:
    """Collects pages of events as the row groups of a Parquet file in memory.

    Every event can be restored exactly. A value is null if it follows from others: the id and the
    time of a decision for a reward in the same page, the parts of a key that kind and id give, and
    a propensity that is among the probabilities. An event whose key or body does not have the form
    that this version of submax writes is stored as it is.
    """

    def __init__(self, settings: Settings) -> None:
        self._schema = segment_schema(settings)
        self._action = [int] * len(settings.menu.slots) + [float] * len(settings.menu.ranges)
        self._slots = len(settings.menu.slots)
        types = {"double": float, "string": str}
        self._context = [
            types[str(field.type)] for field in self._schema if field.name.startswith(CONTEXT)
        ]
        self._tables = page_tables(settings, self._schema)
        self._file = BytesIO()
        self._writer: Any = None

    def add_columns(self, page: SealedColumns) -> None:
        """Write one page of events by columns, if they have the usual form."""
        table = self._tables.of(page)
        if table is None:
            self.add(page.listed())
        else:
            self._write(table)

    def add(self, events: Sequence[Event]) -> None:
        """Write one page of events."""
        import pyarrow as pa

        columns: dict[str, Column] = {name: [None] * len(events) for name in self._schema.names}
        columns["position"] = [event.position for event in events]
        columns["time"] = all_bits([event.at for event in events])
        columns["kind"] = [event.kind for event in events]
        _fill_keys(columns, events)
        self._fill_bodies(columns, events)
        self._write(pa.table(columns, self._schema))

    def _write(self, table: Any) -> None:
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, self._schema, **writer_options(table))
        self._writer.write_table(table)

    def finish(self) -> bytes:
        """Return the bytes of the segment."""
        if self._writer is None:
            raise InputError("a segment without events was to be written: add events first")
        self._writer.close()
        return self._file.getvalue()

    def _fill_bodies(self, columns: dict[str, Column], events: Sequence[Event]) -> None:
        """Fill the columns of decisions and rewards, and ``body`` for all that do not fit."""
        fitting: list[tuple[int, DecisionMade]] = []
        for row, event in enumerate(events):
            if event.kind == DECISION and (made := self._fitting_decision(event)) is not None:
                fitting.append((row, made))
            elif event.kind == REWARD and (given := _fitting_reward(event)) is not None:
                columns["value"][row] = given.value
                columns["source"][row] = given.source
            elif event.body or event.kind in (DECISION, REWARD):
                columns["body"][row] = event.body
        if fitting:
            rows, decisions = zip(*fitting, strict=True)
            for name, values in _decision_columns(decisions).items():
                column = columns[name]
                for row, value in zip(rows, values, strict=True):
                    column[row] = value

    def _fitting_decision(self, event: Event) -> DecisionMade | None:
        """The decision of an event, if the columns can hold it exactly; None if they cannot."""
        made = _fitting(event, DecisionMade)
        if made is None or [*map(type, made.action)] != self._action:
            return None
        since = 0 if made.group is None else made.group.since
        integers = (made.version, since, *made.action[: self._slots])
        if not -LIMIT <= min(integers) <= max(integers) < LIMIT:
            return None
        return made if [*map(type, made.context)] == self._context else None


def _fitting(event: Event, kind: type[Body]) -> Body | None:
    """The body of an event, if it is written as this version of submax writes it."""
    try:
        body = body_of(event, kind)
    except InputError:
        return None
    return body if ENCODER.encode(body) == event.body else None


def _fitting_reward(event: Event) -> RewardGiven | None:
    """The reward of an event, if the columns can hold it; one with parts is stored as it is."""
    given = _fitting(event, RewardGiven)
    return None if given is None or given.parts is not None else given


def _decision_columns(decisions: Sequence[DecisionMade]) -> dict[str, Sequence[Any]]:
    """The values of decisions by the names of their columns."""
    actions = zip(*(made.action for made in decisions), strict=True)
    contexts = zip(*(made.context for made in decisions), strict=True)
    return {
        **{f"{ACTION}{number}": values for number, values in enumerate(actions)},
        **{f"{CONTEXT}{number}": values for number, values in enumerate(contexts)},
        "propensity": [None if _is_listed(made) else made.propensity for made in decisions],
        "version": [made.version for made in decisions],
        "eligible": [ENCODER.encode(made.eligible) for made in decisions],
        "probabilities": [made.probabilities for made in decisions],
        "activated": [made.activated for made in decisions],
        "holdout": [made.holdout for made in decisions],
        "unit": [made.unit for made in decisions],
        "paused": [made.paused for made in decisions],
        **_group_columns([made.group for made in decisions]),
    }


def _group_columns(groups: Sequence[ExperimentAssignment | None]) -> dict[str, Sequence[Any]]:
    """The values of the groups of decisions; null for a decision without a group."""
    return {
        "group_since": [None if one is None else one.since for one in groups],
        "group": [None if one is None else one.group for one in groups],
        "holdout_share": [None if one is None else one.holdout_share for one in groups],
        "control_share": [None if one is None else one.control_share for one in groups],
    }


def _is_listed(made: DecisionMade) -> bool:
    """Whether the propensity is the probability of the action in the list of probabilities."""
    listed = listed_probability(made.action, made.eligible, made.probabilities)
    # The bits are compared, since 0.0 and -0.0 are equal; other equal numbers have the same bits.
    return listed == made.propensity and (
        listed != 0.0 or bits_of(listed) == bits_of(made.propensity)
    )


def _fill_keys(columns: dict[str, Column], events: Sequence[Event]) -> None:
    """Fill the columns of keys, and those that say which event an event is about."""
    decisions: dict[int, Event] = {}
    about_bits = all_bits([event.about_at for event in events])
    for row, event in enumerate(events):
        identifier, name = parts_of(event.kind, event.key)
        decision = decisions.get(event.about_position)
        same = keys_of(event.kind, identifier, name) == (event.key, event.about)
        if not same or (identifier is None and decision is not None):
            columns["irregular"][row] = True
            columns["key"][row], columns["about"][row] = event.key, event.about
        elif identifier is not None:
            columns["reward_key"][row] = name
            if decision is None or event.about is None or decision.key != event.about:
                _fill_identifier(columns, row, identifier)
        if event.about_position:
            columns["back"][row] = event.position - event.about_position
        # The bits are compared, since 0.0 and -0.0 are equal.
        if about_bits[row] != (0 if decision is None else bits_of(decision.at)):
            columns["about_time"][row] = about_bits[row]
        if event.kind == DECISION:
            decisions[event.position] = event


def _fill_identifier(columns: dict[str, Column], row: int, identifier: str) -> None:
    halves = halves_of(identifier)
    if halves is None:
        columns["id"][row] = identifier
    else:
        columns["id_high"][row], columns["id_low"][row] = halves
