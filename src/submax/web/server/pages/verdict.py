"""Sentences on which arm is ahead and what a bandit gains, or why that cannot be said yet."""

import math
from typing import NamedTuple

from submax.bandit.decision import LiftReport
from submax.bandit.lift import PLANNED_DECISIONS
from submax.live.log.action_tally import ActionTally, ChoiceTally
from submax.schema.actions import ActionSpec
from submax.sequential.mixture_boundary import mixture_boundary
from submax.web.dashboard.formats import interval, reward, roughly_percent

ERROR = 0.05
"""The chance with which the interval misses the truth at any time."""
FEWEST = 50
"""Rows of an arm below which nothing is said: the interval holds for large samples."""
CERTAINTY = "(95 % interval, valid at any time)"


class ArmComparison(NamedTuple):
    """By how much the arm ``ahead`` is better than ``behind``, with an interval for all times."""

    ahead: str
    behind: str
    low: float
    high: float


def comparison(menu: ActionSpec, tally: ActionTally) -> ArmComparison | None:
    """Compare the two active arms that earn most; None if one was chosen too rarely.

    Every row gives x = w r for the better arm, −w r for the other and 0 for all others, with
    w = 1 / propensity. Its expected value is the difference of what the two arms earn, whatever the
    policy preferred at that time. The interval around the mean of x is valid at all times (Howard,
    Ramdas, McAuliffe and Sekhon 2021), for large samples.
    """
    tallies = tally.choices[0]
    total = sum(one.rows for one in tallies)
    known = [
        (_rate(one), choice.name, one)
        for choice, one in zip(menu.slots[0].choices, tallies, strict=False)
        if choice.status == "active" and one.rows >= FEWEST
    ]
    if len(known) < 2:
        return None
    (_, ahead, best), (_, behind, second) = sorted(known, key=lambda row: -row[0])[:2]
    difference = (best.weights[2] - second.weights[2]) / total
    deviation = math.sqrt((best.weights[4] + second.weights[4]) / total)
    half = deviation * mixture_boundary(total, ERROR, 0.0, PLANNED_DECISIONS) / total
    return ArmComparison(ahead, behind, difference - half, difference + half)


def leader(menu: ActionSpec, tally: ActionTally) -> str:
    """The arm that is surely ahead of all others, empty if none is."""
    found = comparison(menu, tally) if menu.plain else None
    return found.ahead if found is not None and found.low > 0 else ""


def arm_sentence(menu: ActionSpec, tally: ActionTally, *, percent: bool) -> str:
    """Which arm is ahead; ``percent`` if rewards are 0 or 1."""
    if not menu.plain:
        return "The action has several parts, which are shown one by one on the page Arms."
    if not any(one.decisions for one in tally.choices[0]):
        return "No decision has been made yet, so that nothing can be said."
    found = comparison(menu, tally)
    if found is None:
        return (
            f"It cannot be said yet which arm is ahead: fewer than two active arms have {FEWEST} "
            "decisions that were learned from."
        )
    span = between(found.low, found.high, percent=percent)
    if found.low <= 0:
        return (
            f"It cannot be said yet which arm is ahead: {found.ahead} seems best, and its "
            f"difference from {found.behind} is {span} {CERTAINTY}."
        )
    return f"{found.ahead} is ahead of {found.behind} by {span} {CERTAINTY}."


def lift_sentence(report: LiftReport, *, percent: bool) -> str:
    """How much more the bandit earns than the holdout or the control."""
    if report.low is None or report.high is None:
        return f"What the bandit gains over the {report.against} cannot be said yet."
    span = between(report.low, report.high, percent=percent)
    if report.low > 0:
        more = _relative(report, percent=percent)
        return f"The bandit earns {span} more than the {report.against} {CERTAINTY}{more}."
    if report.high < 0:
        span = between(-report.high, -report.low, percent=percent)
        return f"The bandit earns {span} less than the {report.against} {CERTAINTY}."
    return (
        f"Whether the bandit earns more than the {report.against} cannot be said yet: the "
        f"difference is {span} {CERTAINTY}."
    )


def _relative(report: LiftReport, *, percent: bool) -> str:
    """The means of bandit and group, and how much more the first is in percent."""
    mean, other = report.mean, report.mean_of_group
    if mean is None or other is None or not mean > other > 0:
        return ""
    unit = "percent" if percent else "number"
    means = f"{reward(mean, unit)} against {reward(other, unit)}"
    return f": {means}, about {roughly_percent(mean / other - 1)} more"


def between(low: float, high: float, *, percent: bool) -> str:
    """The ends of an interval, in percentage points if rewards are 0 or 1."""
    if percent:
        return f"{interval(100 * low, 100 * high)} percentage points"
    return interval(low, high)


def _rate(tally: ChoiceTally) -> float:
    return tally.weights[2] / tally.weights[0]
