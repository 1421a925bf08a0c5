"""Events of a stream by columns, which are faster to read than one by one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.live.store.columns.event_kinds import (
    ACTIVATION_KIND,
    DECISION_KIND,
    OTHER_KIND,
    REWARD_KIND,
    kind_numbers,
)
from submax.live.store.columns.key_column import KeyColumn
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
    body: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.position)

    @classmethod
    def made(
        cls,
        position: NDArray[np.int64],
        at: Sequence[float],
        kind: Sequence[object],
        keys: KeyColumn,
        about_position: Sequence[int],
        body: Sequence[bytes],
    ) -> "EventColumns":
        """Return the columns of events from the values of each column."""
        kinds = kind_numbers(kind)
        if None in keys.stored:
            without = [place for place, key in enumerate(keys.stored) if key is None]
            kinds[without] = np.where(kinds[without] == DECISION_KIND, OTHER_KIND, kinds[without])
        feedback = np.flatnonzero((kinds == REWARD_KIND) | (kinds == ACTIVATION_KIND)).tolist()
        lost = [place for place in feedback if keys.about[place] is None]
        if lost:
            kinds[lost] = OTHER_KIND
        return cls(
            position,
            np.fromiter(at, np.float64, len(position)),
            kinds,
            keys,
            np.fromiter(about_position, np.int64, len(position)),
            body,
        )

    @classmethod
    def of(cls, events: Sequence[Event]) -> "EventColumns":
        """Return the columns of some events."""
        if not events:
            return NO_EVENTS
        return cls.made(
            np.array([event.position for event in events], np.int64),
            [event.at for event in events],
            [event.kind for event in events],
            KeyColumn([event.key for event in events], [event.about for event in events]),
            [event.about_position for event in events],
            [event.body for event in events],
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


NO_EVENTS = EventColumns.made(np.zeros(0, np.int64), (), (), KeyColumn(), (), ())
"""The columns of no events, which a reader that follows a log often finds."""
