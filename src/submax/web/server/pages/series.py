"""Numbers over time, as charts and tables show them."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.live.monitoring.rollups.decision_sums import DecisionSums
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.monitoring.rollups.tier import Tier, choice_key

SPANS = {"3h": 60, "2d": 15 * 60, "60d": 6 * 3600, "2y": 24 * 3600}
"""The time spans that can be asked for, with the seconds of an interval in each."""
MOST_POINTS = 240
"""Intervals in one chart, the newest."""
MOST_LINES = 8
"""Choices that have a line of their own; the others are shown as one."""
DEVIATIONS = 1.959964
"""Standard errors on each side of the mean within which it is expected in 95 of 100 cases."""
OTHERS = "others"


class Line(msgspec.Struct, frozen=True):
    """One line of a chart; ``low`` and ``high`` are the ends of its band, if it has one."""

    name: str
    values: list[float | None]
    low: list[float | None] | None = None
    high: list[float | None] | None = None


class Series(msgspec.Struct, frozen=True):
    """Lines over the same intervals, each ``seconds`` long and beginning at the times ``at``."""

    span: str
    seconds: int
    at: list[float]
    lines: list[Line]


def chosen_tier(rollups: Rollups, span: str | None) -> tuple[str, Tier]:
    """The tier of a span that was asked for, or the finest in which a chart shows everything."""
    by_seconds = {tier.resolution.seconds: tier for tier in rollups.tiers}
    if span is not None and span not in SPANS:
        raise InputError(f"span was {span!r:.60}: give one of {', '.join(SPANS)}")
    if span is not None:
        return span, by_seconds[SPANS[span]]
    whole = (name for name, seconds in SPANS.items() if _fits(by_seconds[seconds]))
    name = next(whole, list(SPANS)[-1])
    return name, by_seconds[SPANS[name]]


def reward_series(
    rollups: Rollups,
    span: str | None,
    control: tuple[str, int] | None = None,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Series:
    """The reward for each decision: of the bandit, of the holdout, and of the ``control`` if any.

    ``bounds`` are the lowest and the highest possible reward, beyond which no band reaches.
    The control is given by its name and its number among the choices of the first slot.
    """
    name, tier = chosen_tier(rollups, span)
    intervals = _intervals(tier)
    lines = []
    for group, label in ((0, "bandit"), (1, "holdout")):
        line = _mean_line(tier, intervals, tier.groups.rest == group, label, bounds)
        if line is not None:
            lines.append(line)
    if control is not None:
        lines.append(_choice_line(tier, intervals, *control))
    return _series(name, tier, intervals, lines)


def share_series(
    rollups: Rollups, span: str | None, choices: Sequence[str], slot: int = 0
) -> Series:
    """The share of decisions of each choice of a slot; the least frequent ones are joined."""
    name, tier = chosen_tier(rollups, span)
    intervals = _intervals(tier)
    counts = np.zeros((len(choices), len(intervals)))
    place = np.searchsorted(intervals, tier.choices.leading)
    number = tier.choices.rest - int(choice_key(slot, np.zeros(1, np.int64))[0])
    kept = (number >= 0) & (number < len(choices)) & (place < len(intervals))
    kept &= tier.choices.leading >= (intervals[0] if len(intervals) else 0)
    np.add.at(counts, (number[kept], place[kept]), tier.choices.rows[kept, 0])
    total = counts.sum(axis=0)
    share = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    most = MOST_LINES if len(choices) > MOST_LINES + 1 else len(choices)
    lines = [Line(choices[one], _listed(share[one])) for one in order[:most]]
    if most < len(choices):
        lines.append(Line(OTHERS, _listed(share[order[most:]].sum(axis=0))))
    return _series(name, tier, intervals, lines)


def _fits(tier: Tier) -> bool:
    """Whether a tier has forgotten nothing, and a chart has room for all its intervals."""
    leading = tier.groups.leading
    return tier.groups.floor == 0 and (not len(leading) or leading[-1] - leading[0] < MOST_POINTS)


def _intervals(tier: Tier) -> Integers:
    """The numbers of the newest intervals of a tier, also of those without any decision."""
    leading = np.unique(tier.groups.leading)
    if not len(leading):
        return leading
    # An event whose time is far from the others must not make a chart of empty intervals.
    recent = leading[leading > leading[-1] - MOST_POINTS]
    return np.arange(recent[0], recent[-1] + 1)


def _mean_line(
    tier: Tier, intervals: Integers, of: Booleans, name: str, bounds: tuple[float, float]
) -> Line | None:
    rows = tier.groups.rows[of]
    if not len(rows):
        return None
    sums = DecisionSums.of_table(rows)
    mean, error = sums.mean, sums.standard_error
    at = tier.groups.leading[of]
    return Line(
        name,
        _spread(intervals, at, mean),
        _spread(intervals, at, np.clip(mean - DEVIATIONS * error, *bounds)),
        _spread(intervals, at, np.clip(mean + DEVIATIONS * error, *bounds)),
    )


def _choice_line(tier: Tier, intervals: Integers, name: str, number: int) -> Line:
    of = tier.choices.rest == number
    rows = tier.choices.rows[of]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = rows[:, 2] / rows[:, 1]
    return Line(name, _spread(intervals, tier.choices.leading[of], mean))


def _spread(intervals: Integers, at: Integers, values: Floats) -> list[float | None]:
    """The values at their intervals, with None where there is none."""
    found = np.full(len(intervals), np.nan)
    place = np.searchsorted(intervals, at)
    kept = (place < len(intervals)) & (at >= intervals[0])
    found[place[kept]] = values[kept]
    return _listed(found)


def _listed(values: Floats) -> list[float | None]:
    return [one if math.isfinite(one) else None for one in values.tolist()]


def _series(span: str, tier: Tier, intervals: Integers, lines: list[Line]) -> Series:
    seconds = tier.resolution.seconds
    return Series(span, seconds, [float(one * seconds) for one in intervals], lines)
