"""Rewards of a log as Arrow tables."""

from typing import Any

import numpy as np

from submax.live.log.exporting.times import arrow_times
from submax.live.log.pages.log_page import LogPage
from submax.live.store.columns.event_kinds import REWARD_KIND


def reward_table(page: LogPage, begin: int, end: int) -> Any:
    """Return the table of the rewards from place ``begin`` to ``end`` of a page.

    A reward with several parts is a row for each.
    """
    import pyarrow as pa

    places = begin + np.flatnonzero(page.kind[begin:end] == REWARD_KIND)
    values, names = page.value[places], np.full(len(places), None, np.object_)
    if page.parts:
        each = [page.parts.get(place, {None: page.value[place]}) for place in places.tolist()]
        places = np.repeat(places, [len(one) for one in each])
        values = np.array([value for one in each for value in one.values()], np.float64)
        names = np.array([name for one in each for name in one], np.object_)
    return pa.Table.from_arrays(
        [
            pa.array(page.names.identifiers(places), pa.string()),
            pa.array(page.names.reward_keys(places), pa.string()),
            arrow_times(page.at[places]),
            pa.array(values),
            pa.array(page.about_position[places] > 0),
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
