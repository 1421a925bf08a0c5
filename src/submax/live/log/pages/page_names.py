"""The ids and other texts of the events of a page."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.live.log.pages.uuid_texts import uuid_texts
from submax.live.log.records import RewardGiven, decoded_bodies
from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.columns.event_kinds import DECISION_KIND

Places = NDArray[np.int64]
"""Places of events in their page."""


class PageNames(ABC):
    """Texts of the events of a page, which few readers of a log need."""

    @abstractmethod
    def identifiers(self, places: Places) -> list[str]:
        """The ids of the decisions that the events at some places are, or are about."""

    @abstractmethod
    def sources(self, places: Places) -> list[str]:
        """Who sent the rewards at some places."""

    @abstractmethod
    def reward_keys(self, places: Places) -> list[str]:
        """The keys of the rewards at some places."""

    def decision_array(self, places: Places) -> Any:
        """The ids of the decisions at some places as an Arrow array."""
        import pyarrow as pa

        return pa.array(self.identifiers(places), pa.string())


class StoredNames(PageNames):
    """The texts of events that are in the store."""

    def __init__(self, events: EventColumns) -> None:
        self._events = events

    def identifiers(self, places: Places) -> list[str]:
        kinds, keys = self._events.kind[places], self._events.keys
        chosen: Sequence[int] = places.tolist()
        decided = kinds == DECISION_KIND
        if decided.all():
            texts = keys.texts(chosen)
        elif not decided.any():
            texts = keys.about_texts(chosen)
        else:
            texts = [
                own if is_decision else about
                for is_decision, own, about in zip(
                    decided.tolist(), keys.texts(chosen), keys.about_texts(chosen), strict=True
                )
            ]
        return [text[2:] for text in texts if text is not None]

    def sources(self, places: Places) -> list[str]:
        given = decoded_bodies(
            [*self._events.body.take(places)], self._events.position[places].tolist(), RewardGiven
        )
        return [one.source for one in given]

    def reward_keys(self, places: Places) -> list[str]:
        # The parts of a key have no spaces.
        return [(key or "").split(" ")[2] for key in self._events.keys.texts(places.tolist())]

    def decision_array(self, places: Places) -> Any:
        uuids = self._events.keys.uuids(places.tolist())
        return super().decision_array(places) if uuids is None else uuid_texts(uuids)
