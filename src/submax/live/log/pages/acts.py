"""The events of a page that say something about decisions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.log.pages.log_page import LogPage
from submax.live.log.pages.reward_values import Parts
from submax.live.store.columns.event_kinds import DECISION_KIND, REWARD_KIND


class Acts(NamedTuple):
    """Rewards, activations, and decisions for which rewards wait, in order: ``n`` of them.

    ``place`` is the place among the events that are processed, ``kind`` the number of the kind,
    ``about`` the position of the decision (0 if it was not in the log), and ``value`` the value of
    a reward, all ``[n]``. ``identifiers`` has the ids, by place, of decisions and of feedback for
    unknown decisions, and ``sources`` who sent rewards for unknown decisions. ``parts`` has the
    parts of rewards that have some, by place.
    """

    place: NDArray[np.int64]
    kind: NDArray[np.uint8]
    about: NDArray[np.int64]
    value: Floats
    identifiers: dict[int, str]
    sources: dict[int, str]
    parts: Parts

    @classmethod
    def of(cls, page: LogPage, begin: int, end: int, waiting: dict[str, float]) -> "Acts":
        """Return the acts among the events from place ``begin`` to ``end`` of a page.

        ``waiting`` are the rewards that wait for their decisions, by id.
        """
        places = _between(page.feedback, begin, end)
        unknown = places[page.about_position[places] == 0]
        identifiers: dict[int, str] = {}
        sources: dict[int, str] = {}
        # Ids are texts, which take time, and most pages do not need them.
        if len(unknown) or waiting:
            identifiers = _named(unknown - begin, page.names.identifiers(unknown))
            rewards = unknown[page.kind[unknown] == REWARD_KIND]
            sources = _named(rewards - begin, page.names.sources(rewards))
            awaited = {*identifiers.values(), *waiting}
            decisions = _between(page.decisions, begin, end)
            named = _named(decisions - begin, page.names.identifiers(decisions))
            begun = {place: one for place, one in named.items() if one in awaited}
            identifiers.update(begun)
            places = np.sort(np.concatenate([places, np.array([*begun], np.int64) + begin]))
        kind = page.kind[places]
        about = np.where(kind == DECISION_KIND, page.position[places], page.about_position[places])
        parts = {place - begin: one for place, one in page.parts.items()}
        return cls(places - begin, kind, about, page.value[places], identifiers, sources, parts)

    def between(self, begin: int, end: int) -> "Acts":
        """Return the acts whose numbers are from ``begin`` to ``end``."""
        return self._replace(
            place=self.place[begin:end],
            kind=self.kind[begin:end],
            about=self.about[begin:end],
            value=self.value[begin:end],
        )


def _between(places: NDArray[np.int64], begin: int, end: int) -> NDArray[np.int64]:
    first, stop = np.searchsorted(places, [begin, end])
    return places[first:stop]


def _named(places: NDArray[np.int64], texts: list[str]) -> dict[int, str]:
    return dict(zip(places.tolist(), texts, strict=True))
