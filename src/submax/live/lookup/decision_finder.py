"""Finds decisions by id or unit, with a bounded amount of work."""

import numpy as np

from submax.live.archive.archive import Archive
from submax.live.archive.log_reader import LogReader
from submax.live.log.bandits import log_stream
from submax.live.log.pages.log_page import LogPage
from submax.live.log.records import (
    ACTIVATION,
    REWARD,
    DecisionMade,
    RewardGiven,
    activation_key,
    body_of,
    decision_key,
    reward_key,
)
from submax.live.lookup.found_decision import DecisionRow, FoundDecision, FoundReward
from submax.live.store.event import Event
from submax.live.store.store import PAGE, Store

SEARCHED_EVENTS = 100_000
"""The newest events among which decisions of a unit are looked for; units have no index."""
SEARCHED_SEGMENTS = 64
"""The newest segments of the archive in which an id is looked for, about four million events."""
MOST_ROWS = 25
"""Decisions in a list, the newest."""
FIRST_WINDOW = 256
"""Positions that are read first, from the newest backwards; the next windows are larger."""


class DecisionFinder:
    """Looks into the log of a bandit; one finder must not be used by two threads at once.

    ``keys`` are the keys under which rewards usually come, and ``wait`` is the time in seconds
    after which a reward is late.
    """

    def __init__(self, store: Store, name: str, keys: tuple[str, ...], wait: float) -> None:
        self._store, self._stream, self._name = store, log_stream(name), name
        self._reader = LogReader(store, name)
        self._keys, self._wait = keys, wait

    def find(self, identifier: str) -> FoundDecision | None:
        """The decision with this id; None if there is none among those that are searched."""
        event = self._store.find(self._stream, decision_key(identifier))
        archived = event is None
        if event is None:
            event = self._archived(identifier)
        if event is None:
            return None
        about = self._about(identifier, event)
        activated = [one.at for one in about if one.kind == ACTIVATION]
        rewards = [self._reward(one, event) for one in about if one.kind == REWARD]
        made = body_of(event, DecisionMade)
        return FoundDecision(
            identifier, event.at, made, archived, next(iter(activated), None), rewards
        )

    def has_reward(self, identifier: str) -> bool:
        """Whether a reward came for an id, under one of the usual keys."""
        keys = (reward_key(identifier, key) for key in self._keys)
        return any(self._store.find(self._stream, key) is not None for key in keys)

    def newest(self, end: int, unit: str | None = None) -> list[DecisionRow]:
        """The newest decisions up to a position, or those of one unit, newest first."""
        found: list[DecisionRow] = []
        last, window = end, FIRST_WINDOW
        while len(found) < MOST_ROWS and last > max(end - SEARCHED_EVENTS, 0):
            first = max(last - window, 0)
            found += self._between(first, last, unit)
            last, window = first, min(4 * window, PAGE)
        return found[:MOST_ROWS]

    def _between(self, first: int, last: int, unit: str | None) -> list[DecisionRow]:
        """The decisions after one position and up to another one, newest first."""
        found: list[DecisionRow] = []
        while first < last:
            page = self._reader.read_page(first)
            if not len(page):
                break
            found = _rows(page, first, last, unit) + found
            first = int(page.position[-1])
        return found

    def _archived(self, identifier: str) -> Event | None:
        archive = Archive(self._store, self._name)
        archive.follow()
        for segment in reversed(archive.segments[-SEARCHED_SEGMENTS:]):
            position = archive.reader(segment).position_of(identifier)
            if position is not None:
                return archive.read(position - 1)[0]
        return None

    def _about(self, identifier: str, decision: Event) -> list[Event]:
        """Rewards and activations of a decision, in order."""
        keys = [reward_key(identifier, key) for key in self._keys]
        known = [self._store.find(self._stream, key) for key in [*keys, activation_key(identifier)]]
        found = {one.position: one for one in known if one is not None}
        # Rewards with keys of the caller's own are found if they are on the next page.
        following = self._reader.read(decision.position)
        found |= {one.position: one for one in following if one.about_position == decision.position}
        return [found[position] for position in sorted(found)]

    def _reward(self, event: Event, decision: Event) -> FoundReward:
        given, seconds = body_of(event, RewardGiven), event.at - decision.at
        key = (event.key or "").split(" ")[-1]
        late = event.about_position > 0 and seconds >= self._wait
        return FoundReward(key, given.value, event.at, seconds, late, given.parts, given.source)


def _rows(page: LogPage, first: int, last: int, unit: str | None) -> list[DecisionRow]:
    """The newest decisions of a page after one position and up to another one, newest first."""
    made, position = page.made, page.position[page.decisions]
    wanted = (position > first) & (position <= last)
    if unit is not None:
        wanted &= made.unit == unit
    which = np.flatnonzero(wanted)[::-1][:MOST_ROWS]
    places = page.decisions[which]
    columns = (
        page.names.identifiers(places),
        page.at[places].tolist(),
        made.action[which].tolist(),
        made.propensity[which].tolist(),
        made.version[which].tolist(),
        made.unit[which].tolist(),
        made.holdout[which].tolist(),
    )
    return [DecisionRow(*row) for row in zip(*columns, strict=True)]
