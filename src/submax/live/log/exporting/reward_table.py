"""Rewards of a log as Arrow tables."""

from typing import Any

from submax.live.log.exporting.times import arrow_times
from submax.live.log.pages.log_page import LogPage
from submax.live.log.records import REWARD
from submax.live.store.event_columns import EventColumns


def reward_table(events: EventColumns) -> Any:
    """Return the table of the rewards on a page; one with several names is a row for each."""
    import pyarrow as pa

    page, rows = LogPage.of(events), []
    for place, kind in enumerate(page.kind):
        if kind != REWARD or not events.key[place]:
            continue
        # The parts of a key have no spaces.
        _, identifier, key = (events.key[place] or "").split(" ")
        given, known = page.body[place], page.about_position[place] > 0
        parts = {None: given.value} if given.parts is None else given.parts
        rows += [(identifier, key, page.at[place], one, known, name) for name, one in parts.items()]
    identifiers, keys, times, values, known_ones, names = (
        zip(*rows, strict=True) if rows else [()] * 6
    )
    return pa.Table.from_arrays(
        [
            pa.array(identifiers, pa.string()),
            pa.array(keys, pa.string()),
            arrow_times(times),
            pa.array(values, pa.float64()),
            pa.array(known_ones, pa.bool_()),
            pa.array(names, pa.string()),
        ],
        schema=reward_schema(),
    )


def reward_schema() -> Any:
    """Return the columns of an export of rewards; ``name`` is null if rewards have no names."""
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.string()),
            ("key", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("value", pa.float64()),
            ("known", pa.bool_()),
            ("name", pa.string()),
        ]
    )
