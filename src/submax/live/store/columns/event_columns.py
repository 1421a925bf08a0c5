"""Events of a stream by columns, which are faster to read than one by one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.live.store.columns.byte_column import ByteColumn
from submax.live.store.columns.event_kinds import (
    ACTIVATION_KIND,
    DECISION_KIND,
    OTHER_KIND,
    REWARD_KIND,
    kind_numbers,
)
from submax.live.store.columns.key_column import KeyColumn
from submax.live.store.columns.text_keys import TextKeys
from submax.live.store.event import Event


class EventColumns(NamedTuple):
    """The events of a page, in order; every column has one value for each event.

    ``kind`` has the numbers of kinds; it is ``OTHER_KIND`` for an event that says nothing about a
    decision, such as a decision without a key.
    """

    position: NDArray[np.int64]
    at: NDArray[np.float64]
    kind: NDArray[np.uint8]
    keys: KeyColumn
    about_position: NDArray[np.int64]
    body: ByteColumn

    def __len__(self) -> int:
        return len(self.position)

    @classmethod
    def of(cls, events: Sequence[Event]) -> "EventColumns":
        """Return the columns of some events."""
        keys, about = [event.key for event in events], [event.about for event in events]
        kinds = kind_numbers([event.kind for event in events])
        without = np.array([key is None for key in keys], np.bool_)
        kinds[without & (kinds == DECISION_KIND)] = OTHER_KIND
        lost = np.array([key is None for key in about], np.bool_)
        kinds[lost & ((kinds == REWARD_KIND) | (kinds == ACTIVATION_KIND))] = OTHER_KIND
        return cls(
            np.array([event.position for event in events], np.int64),
            np.array([event.at for event in events], np.float64),
            kinds,
            TextKeys(keys, about),
            np.array([event.about_position for event in events], np.int64),
            ByteColumn.of([event.body for event in events]),
        )

    def listed(self) -> list[tuple[object, ...]]:
        """Return the events as tuples of plain values, by which two pages can be compared."""
        places = range(len(self))
        return list(
            zip(
                self.position.tolist(),
                self.at.tolist(),
                self.kind.tolist(),
                self.keys.texts(places),
                self.keys.about_texts(places),
                self.about_position.tolist(),
                self.body,
                strict=True,
            )
        )


NO_EVENTS = EventColumns.of([])
"""The columns of no events, which a reader that follows a log often finds."""
