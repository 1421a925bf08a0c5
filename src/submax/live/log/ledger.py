"""Which decisions of a log have matured, and with which reward."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from submax.bandit.lift import GroupComparisons
from submax.bandit.settings import Settings
from submax.core.arrays import Floats
from submax.live.archive.log_reader import LogReader
from submax.live.background import BACKGROUND
from submax.live.log.action_tally import ActionTally
from submax.live.log.collecting.reward_collector import AtReward, Given, RewardCollector
from submax.live.log.decisions.decided_rows import DecidedRows
from submax.live.log.log_clock import LogClock
from submax.live.log.logarithms import logarithms
from submax.live.log.outcomes import LEARNED, NEVER_ACTIVATED, Observer, Outcomes
from submax.live.log.pages.acts import Acts
from submax.live.log.pages.collection_pause import collection_pause
from submax.live.log.pages.log_page import LogPage
from submax.live.log.pages.second_reader import SecondReader, Settled, WaitingPage
from submax.live.log.rows.row_segments import RowSegments
from submax.live.log.rows.training_rows import TrainingRows
from submax.live.monitoring.rollups.counted_columns import CameRewards, LearnedDecisions
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.store.columns.event_kinds import REWARD_KIND
from submax.live.store.store import Store
from submax.schema.rewards import SLOTS
from submax.schema.rows import Columns

Reader = Callable[[int], LogPage]
"""Reads a page with the next events after a position; the page may begin before them."""
Finder = Callable[[int], LogPage | None]
"""Reads a page with the event at a position; None if the log does not have it."""
PageObserver = Callable[[LogPage, int, int], None]
"""Called with a page that was read, and the places between which its events were processed."""


def ledger_of(
    store: Store,
    name: str,
    settings: Settings,
    observer: Observer | None = None,
    segments: RowSegments | None = None,
) -> "Ledger":
    """An empty ledger for the log of a bandit in a store; ``follow`` reads the log."""
    log = LogReader(store, name)
    return Ledger(settings, log.read_page, observer, log.find, segments)


def nothing_found(position: int) -> None:
    """A finder for logs in which no event is looked up, because ``reward_wait`` is above 0."""


class Ledger:
    """Reads the log with two readers: the first collects rewards, the second settles decisions.

    The first reader reads every event as it comes, up to position ``read_position``. The second
    follows ``reward_wait`` seconds behind, at position ``settled``: when it comes to a decision,
    the decision matures with the rewards that the first reader has collected for it. So decisions
    mature in the order in which they were made, each once, and only the rewards between the two
    positions are held in memory. The ledger depends on the log alone, not on when or how often it
    was read. Pages are processed by columns: the times of the events in a page say between which of
    them each decision is settled, so that many decisions mature in one step.

    If ``reward_wait`` is 0, a decision matures as soon as the first reader reads its reward. The
    second reader then follows at a distance of ``no_reward_after`` and settles decisions without a
    reward; without such a limit it does not move.

    ``rows`` are the decisions to learn from, ``tally`` and ``counts`` count events, ``comparisons``
    compare the bandit with the holdout and the control, and ``collected`` holds what is known about
    decisions that have not matured, and the rewards whose decisions are unknown. If rewards have
    several parts, a decision with a ``reward_wait`` of 0 matures when all of them have come.
    ``segments`` is where full segments of ``rows`` are kept: in memory, if nothing is given.
    ``settings.longest_wait`` is the time after which the second reader settles a decision:
    ``reward_wait``, or ``no_reward_after`` if ``reward_wait`` is 0.
    """

    def __init__(
        self,
        settings: Settings,
        read: Reader,
        observer: Observer | None = None,
        find: Finder = nothing_found,
        segments: RowSegments | None = None,
    ) -> None:
        self.settings = settings
        slots, intervals = len(settings.menu.slots), len(settings.menu.ranges)
        self._slots = slots + intervals
        self._context = settings.context if segments is None or segments.needs_contexts else None
        width = 0 if self._context is None else self._context.width
        self.rows = TrainingRows(width, self._slots, segments)
        self.tally = ActionTally.empty(slots, intervals)
        self.comparisons = GroupComparisons.of(settings)
        self._plain = settings.menu.plain
        self.rollups = Rollups(slots, settings.context, settings.longest_wait)
        self.read_position, self.clock = 0, LogClock()
        self.second = SecondReader(self._waiting_page, settings.longest_wait)
        self.counts: Counter[str] = Counter()
        self.collected = RewardCollector(settings, self.counts, self._decision)
        self._read, self._observer, self._find = read, observer, find
        self.page_observer: PageObserver | None = None

    @property
    def settled(self) -> int:
        """The position up to which the second reader has settled decisions."""
        return self.second.settled

    def follow(self, until: int | None = None) -> None:
        """Read the new events, up to a position if one is given.

        Events that come after the last page was read are left for the next call: the reading would
        not end while events come faster than they are read.
        """
        going = True
        while going:
            with collection_pause():
                going = self._follow_page(until)

    def _follow_page(self, until: int | None) -> bool:
        """Read and process one page; whether there were more events to process."""
        BACKGROUND.give_way()
        page = self._read(self.read_position)
        if not len(page):
            return False
        BACKGROUND.give_way()
        begin, end = page.after(self.read_position), len(page)
        first = int(np.searchsorted(page.decisions, begin))
        rows, decisions = self._rows(page).take(slice(first, None)), page.decisions[first:] - begin
        if self.second.takes(self.read_position):
            self.second.add(WaitingPage(page.position[begin:], page.at[begin:], decisions, rows))
        if until is not None and page.position[-1] > until:
            end = page.after(until)
        if begin < end:
            BACKGROUND.give_way()
            count = int(np.searchsorted(decisions, end - begin))
            self._process(page, begin, end, rows.take(slice(count)))
            if self.page_observer is not None:
                BACKGROUND.give_way()
                self.page_observer(page, begin, end)
        return end == len(page) and not page.is_last

    @property
    def open(self) -> bool:
        """Whether there are decisions that mature as time passes."""
        return self.second.due(self.read_position + 1) < math.inf

    def due(self, at: float) -> bool:
        """Whether a decision would mature if an event were written at this time."""
        due = self.second.due(self.read_position + 1)
        return due < math.inf and due <= self.clock.would_be(at)

    def _rows(self, page: LogPage) -> DecidedRows:
        """What is held of the decisions of a page."""
        position = page.position[page.decisions]
        return DecidedRows.of(position, page.made, self._context, self._slots)

    def _waiting_page(self, after: int) -> WaitingPage:
        page = self._read(after)
        return WaitingPage(page.position, page.at, page.decisions, self._rows(page))

    def _decision(self, position: int) -> DecidedRows | None:
        """The decision at a position, from the log."""
        page = self._find(position)
        rows = None if page is None else self._rows(page)
        if rows is None or position not in rows.position:
            return None
        return rows.take(np.flatnonzero(rows.position == position))

    def _process(self, page: LogPage, begin: int, end: int, decided: DecidedRows) -> None:
        """Let the first reader process some events, among them the decisions ``decided``."""
        at, position = page.at[begin:end], page.position[begin:end]
        now = self.clock.along(at)
        if len(decided.position):
            self.tally.decided(decided.action)
            self.rollups.decided(at[np.searchsorted(position, decided.position)], decided)
            self.collected.begin(decided)
        acts, done = Acts.of(page, begin, end, self.collected.early.values), 0
        self._time_rewards(acts, position, at)
        for settled in self.second.settle(now, position):
            # Rewards that came until then count for the decisions that are settled.
            stop = int(np.searchsorted(acts.place, settled.before[-1]))
            self._step(settled, acts.between(done, stop), now, at)
            done = stop
        self._step(None, acts.between(done, len(acts.place)), now, at)
        self.collected.forget_early(float(now[-1]))
        self.clock.move_to(now[-1], page.at[end - 1])
        self.read_position = int(position[-1])

    def _time_rewards(self, acts: Acts, position: NDArray[np.int64], at: Floats) -> None:
        """Count how long rewards took to come."""
        which = (acts.kind == REWARD_KIND) & (acts.about > 0)
        rewards = acts.place[which]
        came = CameRewards(acts.about[which], position[rewards], at[rewards])
        self.rollups.read(came, int(position[-1]))

    def _step(self, settled: Settled | None, acts: Acts, now: Floats, at: Floats) -> None:
        """Apply acts, and let the decisions mature that are settled meanwhile.

        ``now`` is the time elapsed at each event that is processed, and ``at`` its time.
        """
        BACKGROUND.give_way()
        at_reward = None
        if len(acts.place):
            reached = np.full(len(acts.place), self.settled)
            if settled is not None:
                count = np.searchsorted(settled.before, acts.place, "right")
                reached = np.concatenate([[settled.last], settled.position])[count]
            at_reward = self.collected.apply(acts, reached, now)
            self._tell_late()
        if settled is not None:
            self._mature_settled(settled, at_reward, at)
            self.collected.closed.forget_up_to(self.settled)
        elif at_reward is not None:
            self._mature(at_reward.rows, at_reward.given, at[at_reward.place])

    def _mature_settled(self, settled: Settled, at_reward: AtReward | None, at: Floats) -> None:
        """Let decisions mature in order: those that are settled, and those whose reward came."""
        rows, before = settled.rows, settled.before[settled.decisions]
        closed = self.collected.closed
        if self.settings.reward_wait == 0:
            still_open = [position not in closed for position in rows.position.tolist()]
            which = np.flatnonzero(np.array(still_open, np.bool_))
            rows, before = rows.take(which), before[which]
        given = self.collected.popped(rows.position)
        if at_reward is not None:
            # At one event, decisions that are settled come first.
            before = np.concatenate([before, at_reward.place])
            order = np.argsort(before, kind="stable")
            rows = DecidedRows.joined([rows, at_reward.rows]).take(order)
            joined = map(np.concatenate, zip(given, at_reward.given, strict=True))
            given, before = Given(*joined).take(order), before[order]
        self._mature(rows, given, at[before])

    def _mature(self, rows: DecidedRows, given: Given, at: Floats) -> None:
        """Let decisions mature at these times, with the rewards that they have got."""
        if not len(rows.position):
            return
        BACKGROUND.give_way()
        activated = self.collected.activations(rows)
        outcomes = Outcomes.of(
            rows, given.reward, given.parts, activated, self.settings.default_reward
        )
        learned = np.flatnonzero(outcomes.status == LEARNED)
        if len(learned):
            log_prob = logarithms(rows.propensity[learned])
            action, reward = rows.action[learned], outcomes.reward[learned]
            by_slot = self._by_slot(given.parts[learned])
            self.rows.add(Columns(rows.context[learned], action, reward, log_prob, by_slot))
            weight = self._weights(rows.propensity[learned])
            self.tally.learned(action, reward, weight)
            self.rollups.learned(LearnedDecisions(rows.context[learned], action, reward, weight))
        compared = np.flatnonzero(
            activated & (rows.group["group"] > 0) & ~np.isnan(outcomes.reward)
        )
        if len(compared):
            reward = outcomes.reward[compared]
            self.comparisons.add(rows.group[compared], reward, rows.unit[compared])
        BACKGROUND.give_way()
        self.counts.update(outcomes.counts())
        self._roll_up(rows, outcomes, ~np.isnan(given.reward), at)
        if self._observer is not None:
            self._observer.matured(rows.position, outcomes)

    def _weights(self, propensity: Floats) -> Floats:
        """How much each decision counts in the mean reward of its choice.

        A propensity of several slots is that of their joint action, and not of one choice.
        """
        return 1 / propensity if self._plain else np.ones(len(propensity))

    def _roll_up(
        self, rows: DecidedRows, outcomes: Outcomes, rewarded: NDArray[np.bool_], at: Floats
    ) -> None:
        """Add decisions whose reward is known to the rollups."""
        known = np.flatnonzero((outcomes.status != NEVER_ACTIVATED) & ~np.isnan(outcomes.reward))
        weight = self._weights(rows.propensity[known])
        self.rollups.matured(
            at[known], rows.take(known), outcomes.reward[known], rewarded[known], weight
        )

    def _by_slot(self, parts: Floats) -> Floats | None:
        """The rewards of the slots, 0 if one did not come; None if slots have no rewards."""
        rule = self.settings.reward_parts
        return None if rule is None or rule.kind != SLOTS else np.nan_to_num(parts)

    def _tell_late(self) -> None:
        """Tell the observer which decisions late rewards were about."""
        late = self.collected.late
        if late and self._observer is not None:
            self._observer.late_rewards(np.array(late, np.int64))
        late.clear()
