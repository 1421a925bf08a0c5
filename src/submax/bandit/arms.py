"""Counts and mean rewards of each choice, what is unusual about them, and the printed summary."""

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import add
from typing import Self

import msgspec
import numpy as np

from submax.bandit.active_version import UNKNOWN_CATEGORIES, ActiveVersion
from submax.bandit.guard_rails import GuardRails, Ramp, limits_at
from submax.bandit.settings import Settings
from submax.core.arrays import Floats
from submax.core.rewards import Binary
from submax.core.summary import LINES, Summary, counted, number, percentage
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec, ChoiceIndices
from submax.schema.names import Action


class ChoiceTally(msgspec.Struct):
    """The counts of one choice: its ``decisions``, and the ``rows`` that were learned from.

    ``reward`` and ``squares`` are the sums of the rewards and of their squares. With the weight
    w = 1 / propensity of each row, ``weights`` has the sums of w, w², w r, w² r and w² r².
    """

    decisions: int = 0
    rows: int = 0
    reward: float = 0.0
    squares: float = 0.0
    weights: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)

    @property
    def mean(self) -> float | None:
        """The mean reward of the rows; None without rows."""
        return self.reward / self.rows if self.rows else None

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None with fewer than two rows."""
        if self.rows < 2:
            return None
        spread = max(self.squares - self.reward**2 / self.rows, 0.0)
        return float((spread / (self.rows - 1) / self.rows) ** 0.5)


class ValueTally(msgspec.Struct):
    """The number, sum and range of one real-valued part of the decisions, such as a price."""

    decisions: int = 0
    total: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0

    def add(self, value: float) -> None:
        """Count one decision."""
        known = self.decisions > 0
        self.lowest = min(value, self.lowest) if known else value
        self.highest = max(value, self.highest) if known else value
        self.decisions += 1
        self.total += value


class ActionTally(msgspec.Struct):
    """Tallies of the choices of each slot, by index, and of each real-valued part."""

    choices: list[list[ChoiceTally]]
    values: list[ValueTally]

    @classmethod
    def empty(cls, slots: int, intervals: int) -> Self:
        """The tally before any decision."""
        return cls([[] for _ in range(slots)], [ValueTally() for _ in range(intervals)])

    def decided(self, action: Sequence[float]) -> None:
        """Count one decision, by its encoded action."""
        for slot in range(len(self.choices)):
            self.choice(slot, int(action[slot])).decisions += 1
        for place, tally in enumerate(self.values, start=len(self.choices)):
            tally.add(action[place])

    def learned(self, action: Sequence[float], reward: float, weight: float) -> None:
        """Count one row that is learned from."""
        weighted = weight * reward
        values = weight, weight * weight, weighted, weight * weighted, weighted * weighted
        for slot in range(len(self.choices)):
            tally = self.choice(slot, int(action[slot]))
            tally.rows += 1
            tally.reward += reward
            tally.squares += reward * reward
            first, second, third, fourth, fifth = map(add, tally.weights, values)
            tally.weights = first, second, third, fourth, fifth

    def of_slot(self, slot: int, count: int) -> list[ChoiceTally]:
        """The tallies of the choices of a slot, of which there are ``count``."""
        known = self.choices[slot]
        return [*known, *[ChoiceTally()] * (count - len(known))]

    def choice(self, slot: int, index: int) -> ChoiceTally:
        """The tally of one choice; it is made if the choice was not counted before."""
        tallies = self.choices[slot]
        while len(tallies) <= index:
            tallies.append(ChoiceTally())
        return tallies[index]


QUANTILE = 1.96
"""The standard normal quantile of an interval that is right in 95 of 100 cases."""
AVERAGED_CONTEXTS = 200
"""Number of recent contexts over which probabilities are averaged."""


class ArmStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A choice with its numbers.

    ``share`` is its share of all decisions, ``rows`` is the number of decisions that were learned
    from, and ``reward_rate`` is their mean reward, with a 95 % interval for one look from ``low``
    to ``high``. For plain arms, rewards are weighted by 1 / propensity, so that an arm is not
    judged by the contexts or the times in which it was chosen most often. ``probability`` is that
    of the next decision, a mean over recent contexts; None if it cannot be computed.
    """

    slot: str
    choice: str
    status: str
    decisions: int
    share: float | None
    rows: int
    reward_rate: float | None
    low: float | None
    high: float | None
    probability: float | None


def arm_statuses(
    settings: Settings, menu: ActionSpec, tally: ActionTally, probabilities: Floats | None
) -> list[ArmStatus]:
    """The choices of all slots with their numbers, in the order of the menu.

    ``probabilities`` are those of the active joint actions at the next decision, if known.
    """
    by_slot, scale = _by_slot(probabilities, menu.active), settings.scale
    found = []
    for place, slot in enumerate(menu.slots):
        known = tally.of_slot(place, len(slot.choices))
        total = sum(one.decisions for one in known)
        for index, (choice, one) in enumerate(zip(slot.choices, known, strict=True)):
            rate, low, high = weighted_rate(one, scale)
            found.append(
                ArmStatus(
                    slot=slot.name,
                    choice=choice.name,
                    status=choice.status,
                    decisions=one.decisions,
                    share=one.decisions / total if total else None,
                    rows=one.rows,
                    reward_rate=rate,
                    low=low,
                    high=high,
                    probability=None if by_slot is None else by_slot[place].get(index, 0.0),
                )
            )
    return found


def weighted_rate(
    tally: ChoiceTally, scale: object
) -> tuple[float | None, float | None, float | None]:
    """The mean reward weighted by 1 / propensity, and the ends of its interval.

    The mean is Σ w r / Σ w, with the variance Σ w² (r − mean)² / (Σ w)². For binary rewards the
    interval is Wilson's, for (Σ w)² / Σ w² observations, because it is right for few rows too.
    """
    if not tally.rows:
        return None, None, None
    weight, square, reward, square_reward, square_squares = tally.weights
    mean = reward / weight
    if isinstance(scale, Binary):
        return mean, *wilson_interval(min(max(mean, 0.0), 1.0), weight**2 / square)
    if tally.rows < 2:
        return mean, None, None
    spread = square_squares - 2 * mean * square_reward + mean**2 * square
    half = QUANTILE * math.sqrt(max(spread, 0.0)) / weight
    return mean, mean - half, mean + half


def wilson_interval(mean: float, count: float) -> tuple[float, float]:
    """Wilson's 95 % interval for a probability that was found in ``count`` observations."""
    shrink = 1 + QUANTILE**2 / count
    centre = (mean + QUANTILE**2 / (2 * count)) / shrink
    spread = mean * (1 - mean) / count + QUANTILE**2 / (4 * count**2)
    half = QUANTILE * math.sqrt(spread) / shrink
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _by_slot(
    probabilities: Floats | None, active: ChoiceIndices
) -> Sequence[dict[int, float]] | None:
    """The probabilities of the choices of each slot, by index, from those of joint actions."""
    if probabilities is None:
        return None
    joint = np.reshape(probabilities, [len(indices) for indices in active])
    found = []
    for slot, indices in enumerate(active):
        others = tuple(axis for axis in range(joint.ndim) if axis != slot)
        found.append(dict(zip(indices, joint.sum(axis=others).tolist(), strict=True)))
    return found


def missing_rails(rails: GuardRails, menu: ActionSpec) -> list[str]:
    """Which of control and baseline is not active, and what follows."""
    found = []
    if rails.control is not None and not _is_active(rails.control, menu):
        found.append(
            f"the control {rails.control!r} is not active, so no decision gets it: "
            "resume it, or set another control"
        )
    if rails.baseline is not None and not _is_active(rails.baseline, menu):
        found.append(
            f"the baseline {rails.baseline!r} is not active, so no decision is held out: "
            "resume it, or set another baseline"
        )
    return found


def rail_notices(
    settings: Settings, menu: ActionSpec, ramps: Sequence[Ramp], decided: int, tally: ActionTally
) -> list[str]:
    """What an operator should know about the status, ramps and guard rails of a bandit.

    ``decided`` is the number of decisions so far.
    """
    found = []
    if settings.status == "paused":
        found.append(
            "the bandit is paused: decisions follow the control, the baseline or "
            "chance, and are not learned from"
        )
    elif settings.status == "archived":
        found.append("the bandit is archived: decisions and rewards are refused")
    found += _ramped(menu, ramps, decided)
    rails = settings.guard_rails
    found += missing_rails(rails, menu)
    if isinstance(rails.control, str) and menu.plain:
        found += _capped_control(rails, rails.control, arm_statuses(settings, menu, tally, None))
    return found


def unknown_notices(failures: Mapping[str, int]) -> list[str]:
    """Which fields of contexts had categories that were not declared."""
    return [
        f"{counted(count, 'decision')} had {kind}, which are treated alike: add "
        "them with set(context=…)"
        for kind, count in failures.items()
        if kind.startswith(UNKNOWN_CATEGORIES)
    ]


def _ramped(menu: ActionSpec, ramps: Sequence[Ramp], decided: int) -> Iterator[str]:
    """Which choices are still ramped up, and for how long."""
    for limit in limits_at(ramps, decided):
        slot, index = limit.place
        name = menu.slots[slot].choices[index].name
        yield (
            f"{name!r} is new: it gets at most {100 * limit.share:.3g} % of the "
            f"decisions now; the limit rises, and ends after {limit.left:,} more"
        )


def _is_active(action: Action, menu: ActionSpec) -> bool:
    encoded, active = menu.encoded(action), menu.active
    return all(index in indices for indices, index in zip(active, encoded, strict=False))


def _capped_control(rails: GuardRails, name: str, arms: Sequence[ArmStatus]) -> Iterator[str]:
    """Whether the control earns most, although it has only its share."""
    rates = {
        one.choice: one.reward_rate
        for one in arms
        if one.status == "active" and one.reward_rate is not None
    }
    control = rates.get(name)
    if control is not None and len(rates) > 1 and control >= max(rates.values()):
        yield (
            f"the control {name!r} has the highest reward rate, {control:.4g}, but gets "
            f"only its share of {rails.control_share:.4g}: raise control_share, or use "
            "a holdout instead"
        )


COLUMNS = ("decisions", "share", "learned")


def arms_summary(sentences: Sequence[str], arms: Sequence[ArmStatus], *, binary: bool) -> Summary:
    """Sentences, and a table of choices, the most frequent first, within 80 characters.

    Mean rewards are rates in % if rewards are ``binary``. ``next`` is the share of the next
    decisions that each choice gets.
    """
    plain = all(arm.slot == "" for arm in arms)
    known = any(arm.probability is not None for arm in arms)
    columns = [
        *(["action"] if plain else ["slot", "choice"]),
        *COLUMNS,
        *(["rate" if binary else "mean", "95 % interval"]),
        *(["next"] if known else []),
    ]
    rows = []
    for arm in sorted(arms, key=lambda one: (one.slot, -one.decisions)) if plain else arms:
        name = arm.choice if arm.status == "active" else f"{arm.choice} ({arm.status})"
        cells = [
            f"{arm.decisions:,}",
            percentage(arm.share),
            f"{arm.rows:,}",
            percentage(arm.reward_rate) if binary else number(arm.reward_rate),
            _interval(arm, binary),
            *([percentage(arm.probability)] if known else []),
        ]
        rows.append([*([] if plain else [arm.slot]), name, *cells])
    return Summary(sentences, columns, rows, texts=1 if plain else 2)


def _interval(arm: ArmStatus, binary: bool) -> str:
    if arm.low is None or arm.high is None:
        return "–"
    if binary:
        return f"{100 * arm.low:.1f}–{100 * arm.high:.1f} %"
    return f"{number(arm.low, 3)} to {number(arm.high, 3)}"


def bandit_summary(
    name: str,
    version: ActiveVersion,
    counts: Mapping[str, int],
    tally: ActionTally,
    failures: Mapping[str, int],
    more: Sequence[str] = (),
) -> Summary:
    """Sentences, and a table of actions with counts, mean rewards and shares of decisions.

    ``counts`` are those of events and outcomes, ``failures`` has counts by kind, and ``more`` are
    further sentences.
    """
    settings, menu = version.settings, version.menu
    decisions, learned = counts.get("decisions", 0), counts.get("learned", 0)
    sentences = [
        f"Bandit {name!r}: {_policy(settings)}, {_actions(menu)}, {_context(settings)}",
        f"{counted(decisions, 'decision')}, {learned:,} learned from, "
        f"{decisions - counts.get('matured', 0):,} open; version {version.version}",
    ]
    if counts.get("late rewards"):
        sentences.append(
            f"{counted(counts['late rewards'], 'reward')} arrived too late to be learned from"
        )
    if counts.get("dropped from quarantine"):
        dropped = counted(counts["dropped from quarantine"], "reward")
        sentences.append(
            f"{dropped} for unknown decisions were dropped because too many were waiting"
        )
    failed = [f"{count:,} {kind}" for kind, count in failures.items() if count]
    if failed:
        sentences.append(f"failures, after which the bandit continued: {', '.join(failed)}")
    if settings.status != "active":
        sentences.append(f"the bandit is {settings.status}")
    sentences += [*missing_rails(settings.guard_rails, menu), *more]
    return _with_table(sentences, menu, tally, version)


def _with_table(
    sentences: list[str], menu: ActionSpec, tally: ActionTally, version: ActiveVersion
) -> Summary:
    settings = version.settings
    probabilities = version.average_probabilities(np.zeros((0, 0))) if menu.plain else None
    arms = arm_statuses(settings, menu, tally, probabilities)
    found = arms_summary(sentences, arms, binary=isinstance(settings.scale, Binary))
    if menu.plain:
        return found
    parts = len(menu.slots) + len(menu.ranges)
    room = max(1, (LINES - len(sentences) - 2) // parts)
    rows: list[Sequence[str]] = []
    more = 0
    for slot in menu.slots:
        of_slot = [row for row in found.rows if row[0] == slot.name]
        # The sort keeps the order of choices that were decided equally often.
        of_slot.sort(key=lambda row: -int(row[2].replace(",", "")))
        rows += of_slot[:room]
        more += len(of_slot[room:])
    for interval, value in zip(menu.ranges, tally.values, strict=True):
        rows.append([interval.name, *_value_cells(value)])
    return Summary(sentences, found.columns, rows, texts=2, more=more)


def _value_cells(tally: ValueTally) -> list[str]:
    if tally.decisions == 0:
        return ["–", "0", "–", "–", "–", "–"]
    mean = tally.total / tally.decisions
    values = f"{tally.lowest:.3g} to {tally.highest:.3g}, mean {mean:.3g}"
    return [values, f"{tally.decisions:,}", "–", "–", "–", "–"]


def _policy(settings: Settings) -> str:
    return PolicySpecification(settings.policy).title


def _actions(menu: ActionSpec) -> str:
    if menu.plain:
        return counted(len(menu.active[0]), "action")
    slots = counted(len(menu.slots) + len(menu.ranges), "slot")
    joint = math.prod(map(len, menu.active))
    return slots if menu.ranges else f"{slots} with {joint:,} joint actions"


def _context(settings: Settings) -> str:
    names = settings.context.names
    return f"context: {', '.join(names)}" if names else "no context"
