"""What the log of a bandit says: which decisions have matured, and with which reward."""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator

from submax.live.declaring.settings import Settings
from submax.live.log.action_tally import ActionTally
from submax.live.log.bandits import log_stream
from submax.live.log.log_clock import LogClock
from submax.live.log.position_set import PositionSet
from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    REWARD,
    DecisionMade,
    RewardGiven,
    body_of,
    identifier_of,
)
from submax.live.log.training_rows import TrainingRows
from submax.live.store.event import Event
from submax.live.store.store import Store

Reader = Callable[[int], list[Event]]
"""The next events behind a position."""
Finder = Callable[[str], Event | None]
"""The event with a key."""
Witness = Callable[[Event, str, float | None], None]
"""Told what becomes of an event, and the reward of a decision that is learned."""


def nobody(event: Event, fate: str, reward: float | None) -> None:
    """A witness that does not care."""


def ledger_of(store: Store, name: str, settings: Settings, witness: Witness = nobody) -> "Ledger":
    """An empty ledger over the log of a bandit in a store."""
    stream = log_stream(name)
    return Ledger(
        settings,
        lambda after: store.read(stream, after),
        witness,
        lambda key: store.find(stream, key),
    )


def nothing_found(key: str) -> None:
    """A finder for logs in which no event is looked up, because ``reward_wait`` is above 0."""


class Ledger:
    """A fold over the log by two readers: one hears of rewards, the other settles decisions.

    The first reads every event as it comes. The second follows at a distance of ``reward_wait``:
    when it comes to a decision, the decision has matured, and what was heard of it by then is its
    reward. Decisions so mature in the order in which they were made, each once; between the two
    only the rewards are held in memory. What the ledger says depends on the log alone, not on when
    or how often it was read.

    If ``reward_wait`` is 0, a decision matures as soon as the first reader hears of its reward, and
    ``closed`` holds the positions of such decisions. The second reader then follows at a distance
    of ``no_reward_after`` and settles decisions without a reward; without such a limit it rests.
    """

    def __init__(
        self,
        settings: Settings,
        read: Reader,
        witness: Witness = nobody,
        find: Finder = nothing_found,
    ) -> None:
        self.settings = settings
        slots, intervals = len(settings.menu.slots), len(settings.menu.ranges)
        self.rows = TrainingRows(settings.context.width, slots + intervals)
        self.tally = ActionTally.empty(slots, intervals)
        self.closed = PositionSet()
        self.heard, self.settled, self.segments_kept = 0, 0, 0
        self.clock, self.settled_clock = LogClock(), LogClock()
        self.rewards: dict[str, float] = {}
        self.activated: set[str] = set()
        self.waiting: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self._read, self._witness, self._find = read, witness, find
        self._at_once = settings.reward_wait == 0
        self._ahead: deque[Event] = deque()

    def follow(self, until: int | None = None) -> None:
        """Read what is new, up to a position."""
        for event in self._events():
            if until is not None and event.position > until:
                break
            now = self.clock.advance(event.at)
            self._settle(now, event.position)
            self._forget(now)
            self._hear(event)
            self.heard = event.position

    @property
    def open(self) -> bool:
        """Whether there is anything that matures as time passes."""
        return self._time_matters and self._next(self.heard + 1) is not None

    def due(self, at: float) -> bool:
        """Whether a decision would mature if an event were written at this time."""
        event = self._next(self.heard + 1) if self._time_matters else None
        return event is not None and self._matures(event) <= self.clock.would_be(at)

    @property
    def _time_matters(self) -> bool:
        return self.settings.longest_wait < math.inf

    def _events(self) -> Iterator[Event]:
        while page := self._read(self.heard):
            yield from page

    def _settle(self, now: float, before: int) -> None:
        """Come to all decisions whose time has come, none of them behind the first reader."""
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
        return self._at_once and decision.position in self.closed

    def _next(self, before: int) -> Event | None:
        """The next event of the second reader, below a position."""
        if not self._ahead:
            self._ahead.extend(self._read(self.settled))
        if not self._ahead or self._ahead[0].position >= before:
            return None
        return self._ahead[0]

    def _matures(self, event: Event) -> float:
        return self.settled_clock.would_be(event.at) + self.settings.longest_wait

    def _mature(self, event: Event, identifier: str) -> None:
        decision = body_of(event, DecisionMade)
        heard = self.rewards.pop(identifier, None)
        shown = decision.activated or identifier in self.activated
        self.activated.discard(identifier)
        reward = self.settings.default_reward if heard is None else heard
        fate = "learned"
        if not shown:
            fate = "never activated"
        elif decision.holdout:
            fate = "held out"
        elif reward is None:
            fate = "without reward"
        else:
            self.rows.add(
                self.settings.context.encode(decision.context),
                decision.action,
                reward,
                math.log(decision.propensity),
            )
            self.tally.learned(decision.action, reward)
        self.counts["matured"] += 1
        self.counts[fate] += 1
        self.counts["by default"] += fate == "learned" and heard is None
        self._witness(event, fate, reward if shown else heard)

    def _hear(self, event: Event) -> None:
        if event.kind == DECISION and event.key is not None:
            self.counts["decisions"] += 1
            self.tally.decided(body_of(event, DecisionMade).action)
            self.waiting.pop(identifier_of(event.key), None)
            if self._at_once:
                self._mature_if_complete(event)
        elif event.about is not None and event.kind in (REWARD, ACTIVATION):
            self._hear_of(identifier_of(event.about), event)

    def _hear_of(self, identifier: str, event: Event) -> None:
        """Something about a decision that is open, settled, or not known yet."""
        known = event.about_position > 0
        if known and (event.about_position <= self.settled or self._was_closed(event)):
            self.counts[f"late {event.kind}s"] += 1
            self._witness(event, "late", None)
        elif event.kind == ACTIVATION:
            self.counts["activations"] += 1
            self.activated.add(identifier)
        else:
            self.counts["rewards"] += 1
            if event.about_position == 0:
                self.waiting.setdefault(identifier, self.clock.elapsed + self.settings.quarantine)
            value = body_of(event, RewardGiven).value
            self.rewards[identifier] = self._combined(self.rewards.get(identifier), value)
        if self._at_once and known and event.about_position > self.settled:
            decision = self._find(event.about or "")
            if decision is not None and not self._is_closed(decision):
                self._mature_if_complete(decision)

    def _was_closed(self, event: Event) -> bool:
        return self._at_once and event.about_position in self.closed

    def _mature_if_complete(self, event: Event) -> None:
        """Without a wait: let a decision mature that has a reward and was activated."""
        identifier = identifier_of(event.key or "")
        if identifier not in self.rewards:
            return
        if identifier in self.activated or body_of(event, DecisionMade).activated:
            self.closed.add(event.position)
            self._mature(event, identifier)

    def _combined(self, before: float | None, value: float) -> float:
        if before is None or self.settings.combine == "last":
            return value
        if self.settings.combine == "first":
            return before
        return max(before, value) if self.settings.combine == "max" else before + value

    def _forget(self, now: float) -> None:
        """Give up on rewards whose decision has not come; they wait in the order they came."""
        while self.waiting:
            identifier = next(iter(self.waiting))
            if self.waiting[identifier] > now:
                return
            del self.waiting[identifier]
            del self.rewards[identifier]
            self.counts["orphans"] += 1
