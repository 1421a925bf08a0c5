"""Which decisions of a log have matured, and with which reward."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from submax.live.archive.log_reader import LogReader
from submax.live.declaring.settings import Settings
from submax.live.lift.group_comparisons import GroupComparisons
from submax.live.log.action_tally import ActionTally
from submax.live.log.log_clock import LogClock
from submax.live.log.pages.collection_pause import collection_pause
from submax.live.log.pages.lean_decision import LeanDecision
from submax.live.log.pages.log_page import LogPage
from submax.live.log.pages.page_buffer import PageBuffer
from submax.live.log.position_set import FORGOTTEN_AT_ONCE, PositionSet
from submax.live.log.quarantine import Quarantine, Waiting
from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    RewardGiven,
    body_of,
    decision_key,
)
from submax.live.log.row_segments import RowSegments
from submax.live.log.training_rows import TrainingRows
from submax.live.store.event import Event
from submax.live.store.event_columns import EventColumns
from submax.live.store.store import Store
from submax.schema.menu import EncodedAction
from submax.schema.reward_parts import SLOTS

Reader = Callable[[int], EventColumns]
"""Reads the next events after a position."""
Finder = Callable[[str, int], Event | None]
"""Finds the event with a key at a position."""
Parts = Mapping[str, float]
Observer = Callable[[int, str, float | None, Parts], None]
"""Called with the position of a decision that has matured, its outcome, its reward, and the parts
of the reward that came; or with the position of the decision that a late event is about,
`late reward` or `late activation`, None, and no parts. For a decision that is learned from with the
default reward, the parts are ``BY_DEFAULT``."""
PageObserver = Callable[[LogPage, int], None]
"""Called with a page that was read, and the number of its events that were processed."""
NO_PARTS: Parts = MappingProxyType({})
BY_DEFAULT: Parts = MappingProxyType({})
RECENT_DECISIONS = 10_000
"""Decisions that are remembered if ``reward_wait`` is 0: some megabytes."""


def ignore(position: int, outcome: str, reward: float | None, parts: Parts) -> None:
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
    return Ledger(settings, log.read_columns, observer, log.find, segments)


def nothing_found(key: str, position: int) -> None:
    """A finder for logs in which no event is looked up, because ``reward_wait`` is above 0."""


class Ledger:
    """Reads the log with two readers: the first collects rewards, the second settles decisions.

    The first reader reads every event as it comes, up to position ``read_position``. The second
    follows ``reward_wait`` seconds behind, at position ``settled``: when it comes to a decision,
    the decision matures with the rewards that the first reader has collected for it. So decisions
    mature in the order in which they were made, each once, and only the rewards between the two
    positions are held in memory. The ledger depends on the log alone, not on when or how often it
    was read, although it is read by pages, because a loop over columns is faster.

    If ``reward_wait`` is 0, a decision matures as soon as the first reader reads its reward, and
    ``closed`` has the positions of such decisions. The second reader then follows at a distance of
    ``no_reward_after`` and settles decisions without a reward; without such a limit it does not
    move.

    ``rows`` are the decisions to learn from, ``tally`` and ``counts`` count events, ``comparisons``
    compare the bandit with the holdout and the control, ``rewards`` and ``activated`` hold what is
    known about decisions that have not matured, and ``quarantine`` has the ids of rewards whose
    decisions are unknown. If rewards have parts, ``parts`` has those that came, and ``rewards``
    what they are together; a decision with a ``reward_wait`` of 0 then matures when all parts have
    come.
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
        self.comparisons = GroupComparisons.of(settings)
        self.closed = PositionSet()
        self.read_position, self.settled = 0, 0
        self.clock, self.settled_clock = LogClock(), LogClock()
        self.rewards: dict[str, float] = {}
        self.parts: dict[str, dict[str, float]] = {}
        self.activated: set[str] = set()
        self.quarantine = Quarantine()
        self.counts: Counter[str] = Counter()
        self._read, self._observer, self._find = read, observer, find
        self.page_observer: PageObserver | None = None
        self._rule = settings.reward_parts
        self._slot_names = (
            self._rule.names if self._rule is not None and self._rule.kind == SLOTS else None
        )
        self._matures_at_reward = settings.reward_wait == 0
        self._time_matters = settings.longest_wait < math.inf
        self._buffer = PageBuffer(lambda after: LogPage.of(read(after)))
        self._decided: list[EncodedAction] = []
        self._learned_actions: list[EncodedAction] = []
        self._learned_rewards: list[float] = []
        self._recent: dict[str, tuple[int, LeanDecision]] = {}

    def follow(self, until: int | None = None) -> None:
        """Read the new events, up to a position if one is given."""
        going = True
        while going:
            with collection_pause():
                going = self._follow_page(until)

    def _follow_page(self, until: int | None) -> bool:
        """Read and process one page; whether there may be more events to process."""
        events = self._read(self.read_position)
        if not events.position:
            return False
        page, end = LogPage.of(events), len(events.position)
        if self._time_matters and self._buffer.takes(self.settled, self.read_position):
            self._buffer.add(page)
        if until is not None and page.position[-1] > until:
            end = bisect_right(page.position, until)
        try:
            self._process(page, end)
        finally:
            self._save_tally()
        if self.page_observer is not None:
            self.page_observer(page, end)
        return end == len(page)

    @property
    def open(self) -> bool:
        """Whether there are decisions that mature as time passes."""
        return self._time_matters and self._due(self.read_position + 1) < math.inf

    def due(self, at: float) -> bool:
        """Whether a decision would mature if an event were written at this time."""
        if not self._time_matters:
            return False
        return self._due(self.read_position + 1) <= self.clock.would_be(at)

    def _process(self, page: LogPage, end: int) -> None:
        """Let the first reader process the events of a page up to a place in it."""
        clock, counts, decided = self.clock, self.counts, self._decided.append
        quarantine, at_reward = self.quarantine, self._matures_at_reward
        rewards, activated = self.rewards, self.activated
        # The time at which the next event of the second reader matures; none is known before.
        due = self._due(self.read_position + 1) if self._time_matters else math.inf
        for position, at, kind, identifier, about_position, body in zip(
            page.position[:end],
            page.at,
            page.kind,
            page.identifier,
            page.about_position,
            page.body,
            strict=False,
        ):
            last = clock.last
            if last is not None and at > last:
                clock.elapsed += at - last
            clock.last, now = at, clock.elapsed
            if due <= now:
                due = self._settle(now, position)
            if quarantine:
                self._forget(now)
            if kind == DECISION:
                counts["decisions"] += 1
                decided(body.action)
                if identifier in rewards or identifier in activated:
                    self._begin(identifier)
                if at_reward:
                    self._remember(position, identifier, body)
                    self._mature_if_complete(position, identifier, body)
            elif kind:
                self._process_feedback(kind, identifier, about_position, body)
            self.read_position = position
            if due == math.inf and self._time_matters:
                due = self._due(position + 1)

    def _save_tally(self) -> None:
        """Add what was decided and learned to the tally, for many events at once."""
        self.tally.decided(self._decided)
        self.tally.learned(self._learned_actions, self._learned_rewards)
        self.comparisons.save()
        for counted in (self._decided, self._learned_actions, self._learned_rewards):
            counted.clear()

    def _due(self, before: int) -> float:
        """When the next event of the second reader matures; never if it is not below a position."""
        head = self._buffer.head or self._buffer.fill(self.settled)
        if head is None or head[0] >= before:
            return math.inf
        return self.settled_clock.would_be(head[1]) + self.settings.longest_wait

    def _settle(self, now: float, before: int) -> float:
        """Let the second reader settle all decisions below ``before`` whose time has come.

        Return when the next one matures, as ``_due`` would.
        """
        clock, wait, closed = self.settled_clock, self.settings.longest_wait, self.closed
        buffer, at_reward = self._buffer, self._matures_at_reward
        while (head := buffer.head or buffer.fill(self.settled)) is not None:
            position, at, kind, identifier, body = head
            if position >= before:
                break
            elapsed, last = clock.elapsed, clock.last
            if last is not None and at > last:
                elapsed += at - last
            if elapsed + wait > now:
                return elapsed + wait
            clock.elapsed, clock.last = elapsed, at
            self.settled = position
            buffer.advance()
            if kind == DECISION and not (at_reward and position in closed):
                self._mature(position, identifier, body)
            if position - closed.base >= FORGOTTEN_AT_ONCE:
                closed.forget_up_to(position)
        return math.inf

    def _mature(self, position: int, identifier: str, decision: LeanDecision) -> None:
        given = self.rewards.pop(identifier, None)
        parts = NO_PARTS if self._rule is None else self.parts.pop(identifier, NO_PARTS)
        activated = decision.activated
        if self.activated and identifier in self.activated:
            activated = True
            self.activated.discard(identifier)
        reward = self.settings.default_reward if given is None else given
        outcome = "learned"
        if not activated:
            outcome = "never activated"
        elif decision.holdout:
            outcome = "held out"
        elif decision.paused:
            outcome = "paused"
        elif reward is None:
            outcome = "without reward"
        else:
            log_prob = math.log(decision.propensity)
            by_slot = (
                None
                if self._slot_names is None
                else [parts.get(name, 0.0) for name in self._slot_names]
            )
            self.rows.add(decision.context, decision.action, reward, log_prob, by_slot)
            self._learned_actions.append(decision.action)
            self._learned_rewards.append(reward)
            if given is None:
                self.counts["by default"] += 1
        if decision.group is not None and activated and reward is not None:
            self.comparisons.note(decision.group, reward, decision.unit)
        self.counts["matured"] += 1
        self.counts[outcome] += 1
        # A decision that was never activated gets no default reward.
        if given is None:
            parts = BY_DEFAULT
        self._observer(position, outcome, reward if activated else given, parts)

    def _begin(self, identifier: str) -> None:
        """Let the rewards that waited for a decision count, and no others.

        An id can be used again once its first decision was archived, which may have been pending.
        """
        if identifier not in self.quarantine:
            self.rewards.pop(identifier, None)
            self.parts.pop(identifier, None)
        self.activated.discard(identifier)
        self.quarantine.release(identifier)

    def _process_feedback(
        self, kind: str, identifier: str, about_position: int, given: RewardGiven | None
    ) -> None:
        """Process a reward or an activation of a decision that is open, settled, or unknown yet."""
        # Position 0: the decision was not in the log when this event was written.
        known = about_position > 0
        if known and (about_position <= self.settled or self._is_closed(about_position)):
            self.counts[f"late {kind}s"] += 1
            self._observer(about_position, f"late {kind}", None, NO_PARTS)
        elif kind == ACTIVATION or given is None:
            self.counts["activations"] += 1
            self.activated.add(identifier)
        else:
            self.counts["rewards"] += 1
            self._collect(identifier, given)
            if not known:
                self._quarantine(identifier, given.source)
        if self._matures_at_reward and known and about_position > self.settled:
            self._mature_if_open(about_position, identifier)

    def _collect(self, identifier: str, given: RewardGiven) -> None:
        """Add a reward to those that the decision has already."""
        if self._rule is None or given.parts is None:
            before = self.rewards.get(identifier)
            value = given.value if before is None else self._combined(before, given.value)
        else:
            parts = self.parts.setdefault(identifier, {})
            for name, number in given.parts.items():
                known = parts.get(name)
                parts[name] = number if known is None else self._combined(known, number)
            value = self._rule.combined(parts)
        self.rewards[identifier] = value

    def _is_complete(self, identifier: str) -> bool:
        """Whether a decision has its reward, or all parts of it."""
        if self._rule is None:
            return identifier in self.rewards
        return self._rule.is_complete(self.parts.get(identifier, NO_PARTS))

    def _mature_if_open(self, position: int, identifier: str) -> None:
        """If ``reward_wait`` is 0: let a decision mature if it did not yet, and is complete."""
        found = None if self._is_closed(position) else self._decision(identifier, position)
        if found is not None:
            self._mature_if_complete(position, identifier, found)

    def _remember(self, position: int, identifier: str, decision: LeanDecision) -> None:
        """Remember a decision whose reward may come soon, so that it need not be looked up."""
        self._recent[identifier] = position, decision
        if len(self._recent) > RECENT_DECISIONS:
            del self._recent[next(iter(self._recent))]

    def _decision(self, identifier: str, position: int) -> LeanDecision | None:
        """The decision with this id at this position, from memory or from the log."""
        recent = self._recent.get(identifier)
        if recent is not None and recent[0] == position:
            return recent[1]
        event = self._find(decision_key(identifier), position)
        return None if event is None else body_of(event, LeanDecision)

    def _is_closed(self, position: int) -> bool:
        return self._matures_at_reward and position in self.closed

    def _mature_if_complete(self, position: int, identifier: str, decision: LeanDecision) -> None:
        """If ``reward_wait`` is 0: let a decision mature that has a reward and was activated."""
        if not self._is_complete(identifier):
            return
        if decision.activated or identifier in self.activated:
            self.closed.add(position)
            self._recent.pop(identifier, None)
            self._mature(position, identifier, decision)

    def _combined(self, before: float, value: float) -> float:
        if self.settings.combine == "last":
            return value
        if self.settings.combine == "first":
            return before
        return max(before, value) if self.settings.combine == "max" else before + value

    def _quarantine(self, identifier: str, source: str) -> None:
        """Let a reward wait for its decision; if too many wait, the oldest are dropped."""
        waiting = Waiting(self.clock.elapsed + self.settings.quarantine, source)
        for dropped in self.quarantine.add(identifier, waiting):
            del self.rewards[dropped]
            self.parts.pop(dropped, None)
            self.counts["dropped from quarantine"] += 1

    def _forget(self, now: float) -> None:
        """Remove rewards whose quarantine is over."""
        for identifier in self.quarantine.release_expired(now):
            del self.rewards[identifier]
            self.parts.pop(identifier, None)
            self.counts["orphans"] += 1
