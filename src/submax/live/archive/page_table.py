"""The table of a page of events in a segment, by columns."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.settings import Settings
from submax.core.errors import InputError
from submax.live.archive.decision_fields import DecisionFields, Fields
from submax.live.archive.segments.segment_schema import segment_schema
from submax.live.log.decisions.encoded_decisions import EncodedDecisions
from submax.live.log.pages.log_page import places_of
from submax.live.log.records import DECISION, REWARD, RewardGiven, decoded_bodies
from submax.live.store.columns.event_kinds import DECISION_KIND
from submax.live.store.columns.key_column import KeysWithIds
from submax.live.store.columns.sealed_columns import SealedColumns
from submax.schema.context import Number

ENCODER = msgspec.msgpack.Encoder()
Places = NDArray[np.int64]


class PageTable:
    """Makes tables with the columns of a segment from columns of events, without single events.

    ``of`` returns None for a page with events of another form than decisions and rewards with ids
    that are UUIDs, as submax makes them; then each event must be looked at. Tests compare the
    tables with those that are made from single events.
    """

    def __init__(self, schema: Any, decisions: DecisionFields) -> None:
        self._schema, self._decisions = schema, decisions

    def of(self, page: SealedColumns) -> Any:
        """Return the table of a page; None if it has events of another form."""
        events = page.columns
        decisions, _, rewards = places_of(events.kind)
        if len(decisions) + len(rewards) < len(events) or events.about_position[decisions].any():
            return None
        made_keys = events.keys.with_uuids("d", decisions)
        given_keys = events.keys.with_uuids("r", rewards)
        if made_keys is None or made_keys.rest.size.any() or given_keys is None:
            return None
        given = _given(page, rewards, given_keys)
        try:
            made = EncodedDecisions(events.body.take(decisions), events.position[decisions])
            fields = self._decisions.of(made) if len(decisions) else {}
        except (InputError, UnicodeDecodeError, msgspec.DecodeError):
            return None
        if given is None or fields is None:
            return None
        halves, rest = _halves(page, decisions, rewards, made_keys, given_keys)
        lists = made.probabilities() if len(decisions) else None
        return self._table(page, {**halves, **rest}, (decisions, fields), (rewards, given), lists)

    def _table(
        self,
        page: SealedColumns,
        of_all: Fields,
        made: tuple[Places, Fields],
        given: tuple[Places, Fields],
        lists: Any,
    ) -> Any:
        import pyarrow as pa

        count, events = len(page), page.columns
        kinds = np.where(events.kind == DECISION_KIND, DECISION, REWARD).astype(np.object_)
        everywhere = np.arange(count)
        columns: dict[str, Any] = {}
        columns["position"], columns["time"] = pa.array(events.position), pa.array(_bits(events.at))
        columns["kind"] = pa.array(kinds, pa.string())
        for places, fields in ((everywhere, of_all), made, given):
            for name, (values, missing) in fields.items():
                kind = self._schema.field(name).type
                columns[name] = _spread(count, places, values, missing, kind)
        if lists is not None:
            index = _spread(count, made[0], np.arange(len(made[0])), None, pa.int64())
            columns["probabilities"] = lists.take(index)
        arrays = [
            columns.get(field.name, pa.nulls(count, field.type)).cast(field.type)
            for field in self._schema
        ]
        return pa.Table.from_arrays(arrays, schema=self._schema)


def page_tables(settings: Settings, schema: Any = None) -> PageTable:
    """Return what makes the tables of the segments of a bandit with these settings."""
    action = ["i"] * len(settings.menu.slots) + ["f"] * len(settings.menu.ranges)
    context = ["f" if isinstance(field, Number) else "S" for field in settings.context.fields]
    return PageTable(schema or segment_schema(settings), DecisionFields(action, context))


def _given(page: SealedColumns, rewards: Places, keys: KeysWithIds) -> Fields | None:
    """Return the columns of rewards; None if one cannot be restored from them."""
    bodies, names = [*page.columns.body.take(rewards)], [*keys.rest]
    try:
        given = decoded_bodies(bodies, page.columns.position[rewards].tolist(), RewardGiven)
        texts = {rest: rest[1:].decode() for rest in {*names}}
    except (InputError, UnicodeDecodeError):
        return None
    if any(ENCODER.encode(one) != body for one, body in zip(given, bodies, strict=True)):
        return None
    if any(not rest.startswith(b" ") or " " in text for rest, text in texts.items()):
        return None
    if any(one.parts is not None or one.value != one.value for one in given):
        return None
    return {
        "value": (np.array([one.value for one in given], np.float64), None),
        "source": (_objects([one.source for one in given]), None),
        "reward_key": (_objects([texts[rest] for rest in names]), None),
    }


def _halves(
    page: SealedColumns,
    decisions: Places,
    rewards: Places,
    made: KeysWithIds,
    given: KeysWithIds,
) -> tuple[Fields, Fields]:
    """Return the columns of ids, and those that say what rewards are about."""
    events, count = page.columns, len(page)
    uuids = np.zeros((count, 16), np.uint8)
    uuids[decisions], uuids[rewards] = made.uuids, given.uuids
    place = np.minimum(np.searchsorted(events.position, events.about_position), count - 1)
    known = events.kind[place] == DECISION_KIND
    known &= (events.position[place] == events.about_position) & (place < np.arange(count))
    same = known & (uuids[place] == uuids).all(axis=1)
    halves = uuids.view(">i8").astype(np.int64)
    expected = np.where(known, _bits(events.at)[place], 0)
    about = _bits(page.about_at)
    return (
        {"id_high": (halves[:, 0], same), "id_low": (halves[:, 1], same)},
        {
            "back": (events.position - events.about_position, events.about_position == 0),
            "about_time": (about, about == expected),
        },
    )


def _bits(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.ascontiguousarray(numbers).view(np.int64)


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    column = np.empty(len(values), np.object_)
    column[:] = values
    return column


def _spread(
    count: int,
    places: Places,
    values: NDArray[Any],
    missing: NDArray[np.bool_] | None,
    kind: Any,
) -> Any:
    """Return an array with values at some places, and nulls at all others."""
    import pyarrow as pa

    column, mask = np.zeros(count, values.dtype), np.ones(count, np.bool_)
    column[places], mask[places] = values, False if missing is None else missing
    if values.dtype == np.object_:
        column[mask] = None
        return pa.array(column, kind)
    return pa.array(column, kind, mask=mask)
