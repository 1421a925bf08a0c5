"""The decisions of a bandit in memory, from when they are made until they mature."""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from submax.bandit.arms import Tally
from submax.bandit.assignment import ExperimentAssignment
from submax.bandit.decision import Decision, Receipt
from submax.bandit.lift import GroupComparison, compare, new_comparisons
from submax.bandit.rewards import CheckedReward, combined_reward, conflicting_reward
from submax.bandit.settings import Settings
from submax.core.errors import NotFoundError
from submax.schema.actions import EncodedAction
from submax.schema.context import ContextSchema
from submax.schema.rewards import SLOTS
from submax.schema.rows import Columns

DECISIONS_KEPT = 100_000
"""Decisions that are remembered after they have matured, so a repeated call or reward is
recognized: about 50 MB. As many are kept open if decisions without a reward never mature."""
COMPARED_AT_ONCE = 256
"""Matured decisions are added to the comparisons of groups in parts of this size."""


class GivenReward(NamedTuple):
    """A reward that came: its value, the parts of it, and whether it was late."""

    value: float
    parts: dict[str, float] | None
    late: bool


# Nothing here can be part of a cycle, and thousands of objects would slow the garbage collector.
class MadeDecision(msgspec.Struct, array_like=True, gc=False):
    """A decision, what it was made from, and what came for it.

    ``answer`` is what the caller got, ``at`` when, in seconds that have passed. ``activation`` is
    the status of a call of ``activate``, if there was one. The ``values`` of the context are
    forgotten when the decision matures.
    """

    answer: Decision
    at: float
    action: EncodedAction
    values: list[Any]
    activated: bool
    group: ExperimentAssignment | None
    rewards: dict[str, GivenReward] = {}
    activation: str = ""


class MaturedRow(NamedTuple):
    """A matured decision that is learned from; ``parts`` are the rewards of the slots, if any."""

    values: list[Any]
    action: EncodedAction
    reward: float
    log_prob: float
    parts: list[float] | None


class DecisionsState(msgspec.Struct):
    """Everything that ``Decisions`` remembers, as it is saved."""

    tallies: list[list[Tally]]
    elapsed: float = 0.0
    last: float | None = None
    opened: dict[str, MadeDecision] = msgspec.field(default_factory=OrderedDict)
    closed: dict[str, MadeDecision] = msgspec.field(default_factory=OrderedDict)
    rows: list[MaturedRow] = []
    counts: dict[str, int] = msgspec.field(default_factory=Counter)
    comparisons: dict[str, GroupComparison] = {}


class Decisions:
    """Open decisions and their rewards; when a decision matures, it becomes a row to learn from.

    If ``reward_wait`` is above 0, a decision matures when so many seconds have passed, with the
    rewards that came, combined. If it is 0, it matures at its first reward, or when all parts of
    the reward have come, or after ``no_reward_after``. Decisions mature in the order in which they
    were made, except those that mature by their reward.

    ``rows`` are to be learned from, ``counts`` count what happened by kind, and ``tallies``
    sum decisions and rows of each choice. Time is what passes between calls: if the clock is set
    back, no time has passed. ``state`` is what ``saved`` returned.
    """

    def __init__(self, settings: Settings, state: DecisionsState | None = None) -> None:
        menu = settings.menu
        self._wait, self._default = settings.longest_wait, settings.default_reward
        self._at_reward, self._combine = settings.reward_wait == 0, settings.combine
        self._parts = settings.reward_parts
        self._by_slot = self._parts is not None and self._parts.kind == SLOTS
        self._context, self._columns = settings.context, len(menu.parts)
        self._plain = menu.plain
        state = self._state = state or DecisionsState([[] for _ in menu.slots])
        # An ordered dict is emptied from its front without looking at what was there.
        self._open = state.opened = OrderedDict(state.opened)
        self._closed = state.closed = OrderedDict(state.closed)
        self.counts = state.counts = Counter(state.counts)
        state.comparisons = new_comparisons(settings) | state.comparisons
        self.rows, self.tallies = state.rows, state.tallies
        self._compared: list[tuple[ExperimentAssignment, float, str | None]] = []

    def use_context(self, context: ContextSchema) -> None:
        """Use a context to which fields or categories were added."""
        self._context = context
        for made in self._open.values():
            made.values = context.with_missing(made.values)
        with_missing = context.with_missing
        self.rows[:] = [row._replace(values=with_missing(row.values)) for row in self.rows]

    def advance(self, clock: float) -> float:
        """Let time pass up to what the clock shows; return the seconds that have passed."""
        state = self._state
        if state.last is not None and clock > state.last:
            state.elapsed += clock - state.last
        state.last = clock
        now = state.elapsed
        if self._wait < math.inf:
            while self._open and now - (made := next(iter(self._open.values()))).at >= self._wait:
                self._mature(made)
        return now

    def find(self, identifier: str) -> MadeDecision | None:
        """The decision with this id; None if there is none, or it was forgotten."""
        return self._open.get(identifier) or self._closed.get(identifier)

    def known(self, identifier: str) -> MadeDecision:
        """The decision with this id; a ``NotFoundError`` if there is none."""
        made = self.find(identifier)
        if made is None:
            raise NotFoundError(
                f"there is no decision {identifier!r:.80} (or it was forgotten): "
                "give the id of a decision of this bandit"
            )
        return made

    def add(self, made: MadeDecision) -> None:
        """Add a new decision."""
        identifier = made.answer.id
        self.counts["decisions"] += 1
        for tally in self._tallies_of(made.action):
            tally.decisions += 1
        self._open[identifier] = made
        if self._wait == math.inf and len(self._open) > DECISIONS_KEPT:
            self._open.popitem(last=False)

    def reward(self, identifier: str, given: CheckedReward) -> Receipt:
        """Record a reward; a ``ConflictError`` if another value came under the same key."""
        made = self.known(identifier)
        late = self._state.elapsed - made.at >= self._wait
        before = made.rewards.get(given.key)
        if before is not None:
            if (before.value, before.parts) != (given.value, given.parts):
                earlier, now = before.parts or before.value, given.parts or given.value
                raise conflicting_reward(identifier, given.key, earlier, now)
            return Receipt(identifier, "late" if before.late else "accepted", repeated=True)
        made.rewards[given.key] = GivenReward(given.value, given.parts, late)
        if identifier in self._open:
            self.counts["rewards"] += 1
            self._close_if_complete(made)
        else:
            self.counts["late rewards"] += 1
        return Receipt(identifier, "late" if late else "accepted")

    def activate(self, identifier: str) -> Receipt:
        """Note that the action of a decision was carried out."""
        made = self.known(identifier)
        if made.activation:
            return Receipt(identifier, made.activation, repeated=True)
        made.activation = "late" if self._state.elapsed - made.at >= self._wait else "accepted"
        if identifier in self._open:
            self.counts["activations"] += 1
            made.activated = True
            self._close_if_complete(made)
        else:
            self.counts["late activations"] += 1
        return Receipt(identifier, made.activation)

    @property
    def pending(self) -> int:
        """How many decisions will mature as time passes."""
        return len(self._open) if self._wait < math.inf else 0

    @property
    def comparisons(self) -> dict[str, GroupComparison]:
        """What is known about the holdout and the control."""
        self._compare()
        return self._state.comparisons

    def _compare(self) -> None:
        if self._compared:
            groups, rewards, units = zip(*self._compared, strict=True)
            compare(self._state.comparisons, groups, np.array(rewards, np.float64), units)
            self._compared.clear()

    def columns(self) -> Columns:
        """The rows to learn from, as columns."""
        if not self.rows:
            return Columns.empty(self._context.width, self._columns)
        values, action, reward, log_prob, parts = zip(*self.rows, strict=True)
        return Columns(
            self._context.encode(values).astype(np.float32),
            np.array(action, dtype=np.float64),
            np.array(reward, dtype=np.float64),
            np.array(log_prob, dtype=np.float64),
            np.array(parts, dtype=np.float64) if self._by_slot else None,
        )

    def saved(self) -> DecisionsState:
        """What is remembered."""
        self._compare()
        return self._state

    def _close_if_complete(self, made: MadeDecision) -> None:
        """Let a decision mature if it waits for nothing but its reward, and that has come."""
        if not self._at_reward or not made.activated or not made.rewards:
            return
        if self._parts is not None:
            came = {name for one in made.rewards.values() for name in one.parts or ()}
            if len(came) < len(self._parts.weights):
                return
        self._mature(made)

    def _mature(self, made: MadeDecision) -> None:
        """Let an open decision mature with the rewards that came."""
        answer, counts = made.answer, self.counts
        del self._open[answer.id]
        self._closed[answer.id] = made
        if len(self._closed) > DECISIONS_KEPT:
            self._closed.popitem(last=False)
        came = [(one.value, one.parts) for one in made.rewards.values()]
        given, parts = combined_reward(came, self._combine, self._parts)
        reward = given
        if reward is None and made.activated:
            reward = self._default
        counts["matured"] += 1
        if not made.activated:
            counts["never activated"] += 1
        elif answer.holdout:
            counts["held out"] += 1
        elif answer.paused:
            counts["paused"] += 1
        elif reward is None:
            counts["without reward"] += 1
        else:
            counts["learned"] += 1
            if given is None:
                counts["by default"] += 1
            self._learn(made, reward, parts)
        made.values = []
        if made.activated and made.group is not None and reward is not None:
            self._compared.append((made.group, reward, answer.unit))
            if len(self._compared) >= COMPARED_AT_ONCE:
                self._compare()

    def _learn(self, made: MadeDecision, reward: float, parts: dict[str, float]) -> None:
        propensity = made.answer.propensity
        by_slot = None
        if self._by_slot and self._parts is not None:
            # The reward of a slot that did not come is 0.
            by_slot = [parts.get(name, 0.0) for name in self._parts.names]
        row = MaturedRow(made.values, made.action, reward, math.log(propensity), by_slot)
        self.rows.append(row)
        # A propensity of several slots is that of their joint action, and not of one choice.
        weight = 1 / propensity if self._plain else 1.0
        for tally in self._tallies_of(made.action):
            tally.learned(reward, weight)

    def _tallies_of(self, action: EncodedAction) -> Iterator[Tally]:
        for tallies, index in zip(self.tallies, action, strict=False):
            while len(tallies) <= index:
                tallies.append(Tally())
            yield tallies[int(index)]
