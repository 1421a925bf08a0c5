"""Which decisions of a log have matured, and with which reward."""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator

from submax.live.archive.log_reader import LogReader
from submax.live.declaring.settings import Settings
from submax.live.log.action_tally import ActionTally
from submax.live.log.log_clock import LogClock
from submax.live.log.position_set import PositionSet
from submax.live.log.quarantine import Quarantine, Waiting
from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    REWARD,
    DecisionMade,
    RewardGiven,
    body_of,
    identifier_of,
)
from submax.live.log.row_segments import RowSegments
from submax.live.log.training_rows import TrainingRows
from submax.live.store.event import Event
from submax.live.store.store import Store

Reader = Callable[[int], list[Event]]
"""Reads the next events after a position."""
Finder = Callable[[str, int], Event | None]
"""Finds the event with a key at a position."""
Observer = Callable[[Event, str, float | None], None]
"""Called with a decision that has matured, its outcome and its reward, or with a late event."""


RECENT_DECISIONS = 10_000
"""Decisions that are remembered if ``reward_wait`` is 0: some megabytes."""


def ignore(event: Event, outcome: str, reward: float | None) -> None:
    """An observer that does nothing."""


def ledger_of(
    store: Store,
    name: str,
    settings: Settings,
    observer: Observer = ignore,
    segments: RowSegments | None = None,
) -> "Ledger":
    """An empty ledger for the log of a bandit in a store; ``follow`` reads the log."""
    log = LogReader(store, name)
    return Ledger(settings, log.read, observer, log.find, segments)


def nothing_found(key: str, position: int) -> None:
    """A finder for logs in which no event is looked up, because ``reward_wait`` is above 0."""


class Ledger:
    """Reads the log with two readers: the first collects rewards, the second settles decisions.

    The first reader reads every event as it comes, up to position ``read_position``. The second
    follows ``reward_wait`` seconds behind, at position ``settled``: when it comes to a decision,
    the decision matures with the rewards that the first reader has collected for it. So decisions
    mature in the order in which they were made, each once, and only the rewards between the two
    positions are held in memory. The ledger depends on the log alone, not on when or how often it
    was read.

    If ``reward_wait`` is 0, a decision matures as soon as the first reader reads its reward, and
    ``closed`` has the positions of such decisions. The second reader then follows at a distance of
    ``no_reward_after`` and settles decisions without a reward; without such a limit it does not
    move.

    ``rows`` are the decisions to learn from, ``tally`` and ``counts`` count events, ``rewards`` and
    ``activated`` hold what is known about decisions that have not matured, and ``quarantine`` has
    the ids of rewards whose decisions are unknown.
    ``segments`` is where full segments of ``rows`` are kept: in memory, if nothing is given.
    ``settings.longest_wait`` is the time after which the second reader settles a decision:
    ``reward_wait``, or ``no_reward_after`` if ``reward_wait`` is 0.
    """

    def __init__(
        self,
        settings: Settings,
        read: Reader,
        observer: Observer = ignore,
        find: Finder = nothing_found,
        segments: RowSegments | None = None,
    ) -> None:
        self.settings = settings
        slots, intervals = len(settings.menu.slots), len(settings.menu.ranges)
        self.rows = TrainingRows(settings.context, slots + intervals, segments)
        self.tally = ActionTally.empty(slots, intervals)
        self.closed = PositionSet()
        self.read_position, self.settled = 0, 0
        self.clock, self.settled_clock = LogClock(), LogClock()
        self.rewards: dict[str, float] = {}
        self.activated: set[str] = set()
        self.quarantine = Quarantine()
        self.counts: Counter[str] = Counter()
        self._read, self._observer, self._find = read, observer, find
        self._matures_at_reward = settings.reward_wait == 0
        self._ahead: deque[Event] = deque()
        self._recent: dict[str, Event] = {}

    def follow(self, until: int | None = None) -> None:
        """Read the new events, up to a position if one is given."""
        for event in self._events():
            if until is not None and event.position > until:
                break
            now = self.clock.advance(event.at)
            self._settle(now, event.position)
            self._forget(now)
            self._process(event)
            self.read_position = event.position

    @property
    def open(self) -> bool:
        """Whether there are decisions that mature as time passes."""
        return self._time_matters and self._next(self.read_position + 1) is not None

    def due(self, at: float) -> bool:
        """Whether a decision would mature if an event were written at this time."""
        event = self._next(self.read_position + 1) if self._time_matters else None
        return event is not None and self._matures(event) <= self.clock.would_be(at)

    @property
    def _time_matters(self) -> bool:
        return self.settings.longest_wait < math.inf

    def _events(self) -> Iterator[Event]:
        while page := self._read(self.read_position):
            yield from page

    def _settle(self, now: float, before: int) -> None:
        """Let the second reader settle all decisions whose time has come, below ``before``."""
        if not self._time_matters:
            return
        while (event := self._next(before)) is not None and self._matures(event) <= now:
            self._ahead.popleft()
            self.settled_clock.advance(event.at)
            self.settled = event.position
            if event.kind == DECISION and event.key is not None and not self._is_closed(event):
                self._mature(event, identifier_of(event.key))
            self.closed.forget_up_to(self.settled)

    def _is_closed(self, decision: Event) -> bool:
        return self._matures_at_reward and decision.position in self.closed

    def _next(self, before: int) -> Event | None:
        """The next event of the second reader, if it is below a position."""
        if not self._ahead:
            self._ahead.extend(self._read(self.settled))
        if not self._ahead or self._ahead[0].position >= before:
            return None
        return self._ahead[0]

    def _matures(self, event: Event) -> float:
        return self.settled_clock.would_be(event.at) + self.settings.longest_wait

    def _mature(self, event: Event, identifier: str) -> None:
        decision = body_of(event, DecisionMade)
        given = self.rewards.pop(identifier, None)
        activated = decision.activated or identifier in self.activated
        self.activated.discard(identifier)
        reward = self.settings.default_reward if given is None else given
        outcome = "learned"
        if not activated:
            outcome = "never activated"
        elif decision.holdout:
            outcome = "held out"
        elif reward is None:
            outcome = "without reward"
        else:
            self.rows.add(
                decision.context,
                decision.action,
                reward,
                math.log(decision.propensity),
            )
            self.tally.learned(decision.action, reward)
        self.counts["matured"] += 1
        self.counts[outcome] += 1
        self.counts["by default"] += outcome == "learned" and given is None
        # A decision that was never activated gets no default reward.
        self._observer(event, outcome, reward if activated else given)

    def _process(self, event: Event) -> None:
        if event.kind == DECISION and event.key is not None:
            self.counts["decisions"] += 1
            self.tally.decided(body_of(event, DecisionMade).action)
            self._begin(identifier_of(event.key))
            if self._matures_at_reward:
                self._remember(event)
                self._mature_if_complete(event)
        elif event.about is not None and event.kind in (REWARD, ACTIVATION):
            self._process_feedback(identifier_of(event.about), event)

    def _begin(self, identifier: str) -> None:
        """Let the rewards that waited for a decision count, and no others.

        An id can be used again once its first decision was archived, which may have been pending.
        """
        if identifier not in self.quarantine:
            self.rewards.pop(identifier, None)
        self.activated.discard(identifier)
        self.quarantine.release(identifier)

    def _process_feedback(self, identifier: str, event: Event) -> None:
        """Process a reward or an activation of a decision that is open, settled, or unknown yet."""
        # Position 0: the decision was not in the log when this event was written.
        known = event.about_position > 0
        if known and (event.about_position <= self.settled or self._was_closed(event)):
            self.counts[f"late {event.kind}s"] += 1
            self._observer(event, "late", None)
        elif event.kind == ACTIVATION:
            self.counts["activations"] += 1
            self.activated.add(identifier)
        else:
            self.counts["rewards"] += 1
            given = body_of(event, RewardGiven)
            self.rewards[identifier] = self._combined(self.rewards.get(identifier), given.value)
            if event.about_position == 0:
                self._quarantine(identifier, given.source)
        if self._matures_at_reward and known and event.about_position > self.settled:
            decision = self._decision(event.about or "", event.about_position)
            if decision is not None and not self._is_closed(decision):
                self._mature_if_complete(decision)

    def _remember(self, decision: Event) -> None:
        """Remember a decision whose reward may come soon, so that it need not be looked up."""
        self._recent[decision.key or ""] = decision
        if len(self._recent) > RECENT_DECISIONS:
            del self._recent[next(iter(self._recent))]

    def _decision(self, key: str, position: int) -> Event | None:
        """The decision with this key at this position, from memory or from the log."""
        recent = self._recent.get(key)
        return recent if recent and recent.position == position else self._find(key, position)

    def _was_closed(self, event: Event) -> bool:
        return self._matures_at_reward and event.about_position in self.closed

    def _mature_if_complete(self, event: Event) -> None:
        """If ``reward_wait`` is 0: let a decision mature that has a reward and was activated."""
        identifier = identifier_of(event.key or "")
        if identifier not in self.rewards:
            return
        if identifier in self.activated or body_of(event, DecisionMade).activated:
            self.closed.add(event.position)
            self._recent.pop(event.key or "", None)
            self._mature(event, identifier)

    def _combined(self, before: float | None, value: float) -> float:
        if before is None or self.settings.combine == "last":
            return value
        if self.settings.combine == "first":
            return before
        return max(before, value) if self.settings.combine == "max" else before + value

    def _quarantine(self, identifier: str, source: str) -> None:
        """Let a reward wait for its decision; if too many wait, the oldest are dropped."""
        waiting = Waiting(self.clock.elapsed + self.settings.quarantine, source)
        for dropped in self.quarantine.add(identifier, waiting):
            del self.rewards[dropped]
            self.counts["dropped from quarantine"] += 1

    def _forget(self, now: float) -> None:
        """Remove rewards whose quarantine is over."""
        for identifier in self.quarantine.release_expired(now):
            del self.rewards[identifier]
            self.counts["orphans"] += 1
