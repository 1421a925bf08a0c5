"""Collects what is known about decisions that have not matured."""

import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.bandit.settings import Settings
from submax.core.arrays import Floats
from submax.live.log.collecting.early_rewards import EarlyRewards
from submax.live.log.collecting.given_rewards import GivenRewards
from submax.live.log.collecting.position_set import PositionSet
from submax.live.log.collecting.quarantine import WaitingReward
from submax.live.log.collecting.recent_decisions import NOTHING, RecentDecisions
from submax.live.log.decisions.decided_rows import DecidedRows
from submax.live.log.pages.acts import Acts
from submax.live.store.columns.event_kinds import ACTIVATION_KIND, DECISION_KIND

COMBINE: dict[str, Callable[[float, float], float]] = {
    "last": lambda before, value: value,
    "first": lambda before, value: before,
    "max": max,
    "sum": lambda before, value: before + value,
}
MANY_REWARDS = 8
"""If this many times as many rewards are known as decisions mature, each reward is looked up by
itself; an array of them all would take longer."""
UNKNOWN, NOT_ACTIVATED, ACTIVATED = range(3)
"""What is known of a decision for which a reward came: nothing, or whether it was activated when it
was made."""


class Given(NamedTuple):
    """Rewards ``[n]``, NaN where there is none, and the parts of each that came, ``[n, P]``."""

    reward: Floats
    parts: Floats

    def take(self, which: NDArray[np.int64]) -> "Given":
        """Return some of the rewards."""
        return Given(self.reward[which], self.parts[which])


class AtReward(NamedTuple):
    """Decisions that mature because their reward came: ``n`` of them, in order.

    ``place`` is that of the event by which each matured, ``[n]``, and ``given`` what it got.
    """

    place: NDArray[np.int64]
    given: Given
    rows: DecidedRows


class RewardCollector:
    """Rewards and activations of decisions that have not matured, by the decisions' positions.

    ``early`` has the rewards of unknown decisions, and ``closed``, if ``reward_wait`` is 0, the
    positions of decisions that matured with their reward. ``counts`` counts all events.
    ``find`` finds one decision in the log; it is asked only if ``reward_wait`` is 0.
    """

    def __init__(
        self,
        settings: Settings,
        counts: Counter[str],
        find: Callable[[int], DecidedRows | None],
    ) -> None:
        rule, combine = settings.reward_parts, COMBINE[settings.combine]
        self.given = GivenRewards[int](combine, rule)
        self.early = EarlyRewards(GivenRewards[str](combine, rule))
        self.activated: set[int] = set()
        self.closed = PositionSet()
        self.late: list[int] = []
        self._at_reward = settings.reward_wait == 0
        self._recent = RecentDecisions(find)
        self._names = [] if rule is None else rule.names
        self._quarantine_seconds = settings.quarantine
        self._counts = counts

    def restore_rewards(
        self, rewards: dict[int, float], parts: dict[int, dict[str, float]]
    ) -> None:
        """Take over the rewards of decisions, by position, from a snapshot."""
        self.given.values, self.given.parts = rewards, parts

    def restore_early(
        self,
        rewards: dict[str, float],
        parts: dict[str, dict[str, float]],
        waiting: dict[str, WaitingReward],
    ) -> None:
        """Take over the rewards of unknown decisions, by id, from a snapshot."""
        given = self.early.given
        given.values, given.parts = rewards, parts
        self.early = EarlyRewards(given, waiting)

    def begin(self, decided: DecidedRows) -> None:
        """Learn about decisions before their rewards come."""
        self._counts["decisions"] += len(decided.position)
        if self._at_reward:
            self._recent.add(decided)

    def apply(self, acts: Acts, reached: NDArray[np.int64], now: Floats) -> AtReward | None:
        """Apply acts in order; return the decisions that mature by them, if there are any.

        ``reached`` is the position up to which decisions are settled before each act, and ``now``
        the time elapsed at each event. The positions of late rewards are added to ``late``.
        """
        too_late = (acts.about <= reached) & (acts.about > 0)
        states, place_of, rows = self._decisions(acts, too_late)
        matured: list[tuple[int, int, int]] = []
        for place, kind, position, value, is_late, state, row in zip(
            acts.place.tolist(),
            acts.kind.tolist(),
            acts.about.tolist(),
            acts.value.tolist(),
            too_late.tolist(),
            states,
            place_of,
            strict=True,
        ):
            if kind == DECISION_KIND or position == 0:
                self._apply_by_id(acts, place, kind, position, value, float(now[place]))
            elif is_late or (self._at_reward and position in self.closed):
                self._count_late(kind, position)
                continue
            elif kind == ACTIVATION_KIND:
                self._counts["activations"] += 1
                self.activated.add(position)
            else:
                self._counts["rewards"] += 1
                self.given.add(position, value, acts.parts.get(place))
            if state and self.given.is_complete(position) and self._is_active(state, position):
                self.closed.add(position)
                matured.append((place, position, row))
        if not matured:
            return None
        places, positions, which = zip(*matured, strict=True)
        given = self.popped(np.array(positions))
        return AtReward(np.array(places), given, rows.take(np.array(which)))

    def forget_early(self, now: float) -> None:
        """Forget rewards that have waited too long for their decisions."""
        forgotten = self.early.forget(now) if self.early.values else 0
        if forgotten:
            self._counts["orphans"] += forgotten

    def popped(self, positions: NDArray[np.int64]) -> Given:
        """Return what decisions that mature have got, and forget it."""
        parts = np.full((len(positions), len(self._names)), np.nan)
        if not self.given.values:
            return Given(np.full(len(positions), np.nan), parts)
        if not self._names:
            return Given(self._popped_rewards(positions), parts)
        found = [self.given.pop(position) for position in positions.tolist()]
        for place, (_, came) in enumerate(found):
            parts[place] = [came.get(name, np.nan) for name in self._names]
        rewards = [np.nan if one is None else one for one, _ in found]
        return Given(np.array(rewards, np.float64), parts)

    def _popped_rewards(self, positions: NDArray[np.int64]) -> Floats:
        """The rewards of decisions, which are forgotten; NaN for those that got none."""
        values, reward = self.given.values, np.full(len(positions), np.nan)
        places = np.arange(len(positions))
        # In most logs few decisions get a reward, and those are found by one comparison of arrays.
        if len(values) < MANY_REWARDS * len(positions):
            known = np.fromiter(values, np.int64, len(values))
            places = np.isin(positions, known).nonzero()[0]
        came = positions[places].tolist()
        reward[places] = [values.pop(position, math.nan) for position in came]
        return reward

    def activations(self, rows: DecidedRows) -> NDArray[np.bool_]:
        """Return which decisions that mature were activated, and forget their activations."""
        if not self.activated:
            return rows.activated
        later = [position in self.activated for position in rows.position.tolist()]
        self.activated.difference_update(rows.position[later].tolist())
        return rows.activated | np.array(later, np.bool_)

    def _decisions(
        self, acts: Acts, too_late: NDArray[np.bool_]
    ) -> tuple[list[int], list[int], DecidedRows]:
        """What is known of the decision of each act, and which of the returned rows it is."""
        states = np.full(len(acts.about), UNKNOWN)
        place_of = np.full(len(acts.about), -1)
        rows = NOTHING
        if self._at_reward:
            wanted = np.flatnonzero((acts.about > 0) & ~too_late)
            closed = [position in self.closed for position in acts.about[wanted].tolist()]
            wanted = wanted[~np.array(closed, np.bool_)]
            rows, found = self._recent.rows(acts.about[wanted])
            place_of[wanted] = found
            known = wanted[found >= 0]
            active = rows.activated[place_of[known]]
            states[known] = np.where(active, ACTIVATED, NOT_ACTIVATED)
        return states.tolist(), place_of.tolist(), rows

    def _is_active(self, state: int, position: int) -> bool:
        return state == ACTIVATED or position in self.activated

    def _count_late(self, kind: int, position: int) -> None:
        if kind == ACTIVATION_KIND:
            self._counts["late activations"] += 1
        else:
            self._counts["late rewards"] += 1
            self.late.append(position)

    def _apply_by_id(
        self, acts: Acts, place: int, kind: int, position: int, value: float, now: float
    ) -> None:
        """Apply a reward or an activation of an unknown decision, or begin a decision."""
        self.forget_early(now)
        identifier = acts.identifiers[place]
        if kind == DECISION_KIND:
            waited, parts = self.early.release(identifier)
            if waited is not None:
                self.given.put(position, waited, parts)
        elif kind == ACTIVATION_KIND:
            # An activation that comes before its decision has no effect.
            self._counts["activations"] += 1
        else:
            self._counts["rewards"] += 1
            waiting = WaitingReward(now + self._quarantine_seconds, acts.sources[place])
            dropped = self.early.add(identifier, value, acts.parts.get(place), waiting)
            if dropped:
                self._counts["dropped from quarantine"] += dropped
