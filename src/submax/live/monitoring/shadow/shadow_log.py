"""What the stream of a shadow says so far."""

from bisect import bisect_right
from collections import OrderedDict

from submax.bandit.settings import Settings
from submax.live.log.bandits import shadow_stream
from submax.live.log.records import Fitted, body_of
from submax.live.monitoring.shadow.shadow_records import (
    ENDED,
    FITTED,
    OPINIONS,
    STARTED,
    STOPPED,
    Opinions,
    ShadowStarted,
    ShadowStopped,
)
from submax.live.store.event import Event
from submax.live.store.store import Store

CACHED_EVENTS = 64
"""Events with opinions that are held decoded: decisions mature mostly in their order."""
Opinion = tuple[float, float, float, str | None]
"""Chance, propensity, clipped part and unit of a decision, as in ``Opinions``."""


class ShadowLog:
    """Follows the stream of a shadow.

    ``started`` is its begin, None if there was never a shadow; ``versions`` are those that were
    fitted since, ``stopped`` says why it was switched off. ``judged`` is the position of the last
    decision with an opinion, and ``opinions`` the number of them.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._stream, self._read = store, shadow_stream(name), 0
        self.started: ShadowStarted | None = None
        self._begin(None)

    def _begin(self, started: ShadowStarted | None) -> None:
        self.started = started
        self.versions: dict[int, Fitted] = {}
        self.stopped: str | None = None
        self.judged = 0 if started is None else started.after
        self.opinions = 0
        self._firsts: list[int] = []
        self._events: list[int] = []
        self._cache: OrderedDict[int, dict[int, Opinion]] = OrderedDict()

    def follow(self) -> None:
        """Read the new events."""
        while page := self._store.read(self._stream, self._read, limit=200):
            for event in page:
                self._apply(event)
                self._read = event.position

    def is_of(self, settings: Settings) -> bool:
        """Whether this is the shadow of the settings, beside the policy of the settings."""
        started = self.started
        return started is not None and (started.policy, started.beside) == (
            settings.shadow,
            settings.policy,
        )

    def at(self, position: int) -> Opinion | None:
        """The opinion about the decision at a position; None if there is none."""
        place = bisect_right(self._firsts, position) - 1
        if place < 0:
            return None
        key = self._events[place]
        if key not in self._cache:
            (event,) = self._store.read(self._stream, key - 1, limit=1)
            self._keep(key, body_of(event, Opinions))
        self._cache.move_to_end(key)
        return self._cache[key].get(position)

    def _apply(self, event: Event) -> None:
        if event.kind == STARTED:
            self._begin(body_of(event, ShadowStarted))
        elif event.kind == ENDED:
            self._begin(None)
        elif event.kind == FITTED:
            fitted = body_of(event, Fitted)
            self.versions[fitted.version] = fitted
        elif event.kind == STOPPED:
            self.stopped = body_of(event, ShadowStopped).reason
        elif event.kind == OPINIONS:
            found = body_of(event, Opinions)
            self._firsts.append(found.positions[0])
            self._events.append(event.position)
            self._keep(event.position, found)
            self.judged = max(self.judged, found.positions[-1])
            self.opinions += len(found.positions)

    def _keep(self, key: int, found: Opinions) -> None:
        rows = zip(found.chances, found.propensities, found.clipped, found.units, strict=True)
        self._cache[key] = dict(zip(found.positions, rows, strict=True))
        while len(self._cache) > CACHED_EVENTS:
            self._cache.popitem(last=False)
