"""Computes what can be said about the lift of a bandit now."""

import math
from typing import Any

from submax.core.errors import InputError
from submax.live.declaring.settings import Settings
from submax.live.monitoring.lift.group_comparison import GroupComparison
from submax.live.monitoring.lift.group_comparisons import CONTROL, HOLDOUT
from submax.live.monitoring.lift.lift_report import LiftReport, SampleRatioReport
from submax.live.monitoring.lift.lift_tally import Lift, LiftTally
from submax.live.monitoring.lift.sample_ratio import SampleRatio

ERROR = 0.05
"""The chance that the truth is ever outside the interval."""
AA_ERROR = 0.04
"""The chance of a false alarm by the difference in an A/A test. With 0.01 for the sample ratio, a
false alarm of any kind has a chance of at most 5 %."""
FEWEST = 50
"""Units, or decisions without a unit, that each group must have before an interval for large
samples is given."""


def lift_reports(
    settings: Settings, comparisons: dict[str, GroupComparison], since: int
) -> list[LiftReport]:
    """The lift against the holdout and against the control, as far as they are declared.

    ``since`` is the position of the settings by which groups are drawn now.
    """
    rails = settings.guard_rails
    if not rails.holdout and not rails.control_share:
        raise InputError(
            "this bandit has neither a holdout nor a control, so that there is nothing to compare "
            "it with: set guard rails such as {'holdout': 0.1, 'baseline': 'A'}, and wait until "
            "decisions have matured"
        )
    reports = []
    if rails.holdout:
        found = _current(comparisons[HOLDOUT], since, rails.holdout)
        reports.append(_report(settings, HOLDOUT, rails.baseline, found, aa_test=rails.aa_test))
    if rails.control_share:
        found = _current(comparisons[CONTROL], since, rails.control_share)
        reports.append(_report(settings, CONTROL, rails.control, found, aa_test=False))
    return reports


def _current(comparison: GroupComparison, since: int, share: float) -> GroupComparison:
    """The comparison, or an empty one if no decision has matured since the groups changed."""
    if comparison.tally is None or comparison.since < since:
        return GroupComparison(since, comparison.start, LiftTally(share, comparison.start))
    return comparison


def _report(
    settings: Settings, against: str, action: Any, comparison: GroupComparison, *, aa_test: bool
) -> LiftReport:
    tally, bounds = comparison.tally or LiftTally(0.5), settings.scale.bounds
    lift = tally.lift(bounds, ERROR)
    enough = lift.exact or _smallest(comparison) >= FEWEST
    ratio = _ratio(settings, comparison, tally.share)
    alarm = ratio is not None and ratio.alarm
    if aa_test and enough:
        alarm = alarm or not _contains(tally.lift(bounds, AA_ERROR), 0.0)
    return LiftReport(
        against=against,
        action=action,
        estimate=_finite(lift.estimate),
        low=_finite(lift.low) if enough else None,
        high=_finite(lift.high) if enough else None,
        exact=lift.exact and settings.reward_wait > 0,
        mean=_finite(tally.means[0]),
        mean_of_group=_finite(tally.means[1]),
        decisions=tally.decisions - tally.held_out,
        decisions_of_group=tally.held_out,
        sample_ratio=ratio,
        aa_test=aa_test,
        alarm=alarm,
        cautions=[*_cautions(settings, tally, enough), *_alarms(ratio, aa_test, alarm)],
    )


def _smallest(comparison: GroupComparison) -> int:
    """The smaller number of units, or of decisions without a unit, of the two groups."""
    return min(comparison.chosen, comparison.counted - comparison.chosen)


def _ratio(
    settings: Settings, comparison: GroupComparison, share: float
) -> SampleRatioReport | None:
    """The sample ratio; None if decisions are counted only when a reward comes."""
    if settings.reward_wait == 0:
        return None
    return SampleRatioReport(*SampleRatio.of(share, comparison.chosen, comparison.counted))


def _contains(lift: Lift, value: float) -> bool:
    return lift.low <= value <= lift.high


def _cautions(settings: Settings, tally: LiftTally, enough: bool) -> list[str]:
    found = []
    if not enough:
        found.append(
            f"each group needs at least {FEWEST} units, or decisions without a unit, before there "
            "is an interval"
        )
    if settings.scale.bounds is None:
        found.append(
            "rewards have no bounds, so that the interval holds for large samples of rewards that "
            "have a variance: declare low and high if you know them"
        )
    if tally.clusters is not None:
        found.append(
            "decisions of one unit depend on each other, so that the interval is computed by "
            "clusters of units, and holds for many units"
        )
    if settings.reward_wait == 0:
        found.append(
            "with reward_wait=0 decisions count when their reward comes, so that a group whose "
            "rewards come later, or less often, is not compared fairly: set a reward_wait"
        )
    elif settings.default_reward is None:
        found.append(
            "decisions without a reward do not count, so that the lift is of those with one"
        )
    return found


def _alarms(ratio: SampleRatioReport | None, aa_test: bool, alarm: bool) -> list[str]:
    found = []
    if ratio is not None and ratio.alarm:
        found.append(
            f"the group has the share {ratio.observed:.4g} instead of {ratio.expected:.4g}, so "
            "that decisions of one group are lost or counted twice: do not trust the lift"
        )
    elif aa_test and alarm:
        found.append(
            "both groups are decided alike, and their rewards differ: look for an error in how "
            "actions are displayed or rewards are sent"
        )
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
