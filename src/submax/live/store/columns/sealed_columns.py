"""Events by columns, with what shows whether they were changed or their neighbours are lost."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.event import Event
from submax.live.store.integrity.sealed_event import SealedEvent


class SealedColumns(NamedTuple):
    """The events of a page, in order; every column has one value for each event.

    ``previous`` and ``whole`` are those of ``SealedEvent``. ``listed`` returns the events one by
    one, for whom columns are not enough.
    """

    columns: EventColumns
    about_at: Floats
    previous: NDArray[np.int64]
    whole: Booleans
    listed: Callable[[], list[Event]]

    @classmethod
    def of(cls, sealed: Sequence[SealedEvent]) -> "SealedColumns":
        """Return the columns of some events; those that are not whole have no values."""
        whole = [one.whole for one in sealed]
        events = [
            one.event if is_whole else Event(one.event.position, 0.0, "", None, None, 0, 0.0, b"")
            for one, is_whole in zip(sealed, whole, strict=True)
        ]
        previous = [
            one.previous if is_whole else -1 for one, is_whole in zip(sealed, whole, strict=True)
        ]
        return cls(
            EventColumns.of(events),
            np.array([event.about_at for event in events], np.float64),
            np.array(previous, np.int64),
            np.array(whole, np.bool_),
            lambda: events,
        )

    def __len__(self) -> int:
        return len(self.columns)

    def until(self, end: int) -> "SealedColumns":
        """Return the first events."""
        columns = self.columns
        return SealedColumns(
            EventColumns(
                columns.position[:end],
                columns.at[:end],
                columns.kind[:end],
                columns.keys,
                columns.about_position[:end],
                columns.body.take(slice(end)),
            ),
            self.about_at[:end],
            self.previous[:end],
            self.whole[:end],
            lambda: self.listed()[:end],
        )
