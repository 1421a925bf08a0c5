"""Rewards of a log as Arrow tables."""

from typing import Any

from submax.live.log.exporting.times import arrow_times
from submax.live.log.pages.log_page import LogPage
from submax.live.log.records import REWARD
from submax.live.store.event_columns import EventColumns


def reward_table(events: EventColumns) -> Any:
    """Return the table of the rewards on a page."""
    import pyarrow as pa

    page = LogPage.of(events)
    places = [place for place, kind in enumerate(page.kind) if kind == REWARD and events.key[place]]
    # The parts of a key have no spaces.
    words = [(events.key[place] or "").split(" ") for place in places]
    return pa.Table.from_arrays(
        [
            pa.array([identifier for _, identifier, _ in words], pa.string()),
            pa.array([key for _, _, key in words], pa.string()),
            arrow_times([page.at[place] for place in places]),
            pa.array([page.body[place].value for place in places], pa.float64()),
            pa.array([page.about_position[place] > 0 for place in places], pa.bool_()),
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
