"""Rewards of a log as Arrow tables."""

from typing import Any

import numpy as np

from submax.live.log.exporting.times import arrow_times
from submax.live.log.pages.log_page import LogPage
from submax.live.store.columns.event_kinds import REWARD_KIND


def reward_table(page: LogPage, begin: int, end: int) -> Any:
    """Return the table of the rewards from place ``begin`` to ``end`` of a page."""
    import pyarrow as pa

    places = begin + np.flatnonzero(page.kind[begin:end] == REWARD_KIND)
    return pa.Table.from_arrays(
        [
            pa.array(page.names.identifiers(places), pa.string()),
            pa.array(page.names.reward_keys(places), pa.string()),
            arrow_times(page.at[places]),
            pa.array(page.value[places]),
            pa.array(page.about_position[places] > 0),
        ],
        schema=reward_schema(),
    )


def reward_schema() -> Any:
    """Return the columns of an export of rewards."""
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.string()),
            ("key", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("value", pa.float64()),
            ("known", pa.bool_()),
        ]
    )
