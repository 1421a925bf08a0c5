"""Lift over holdout and control, with intervals that are valid at every look."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import scipy
from numpy.typing import NDArray

from submax.bandit.assignment import ExperimentAssignment
from submax.bandit.decision import LiftReport, SampleRatioReport
from submax.bandit.settings import Settings
from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.statistics.boundary import mixture_boundary

CLUSTERS = 1024
"""Clusters into which units are divided by a hash. The relative standard error of the variance is
about √(2 / 1024) = 4 %, and the sums take 16 kB."""


class ClusterSums(msgspec.Struct, frozen=True):
    """The sum and the number of the values of each cluster; empty before the first unit.

    Values of different units are independent, and those of one unit are in one cluster. The squares
    of clusters' sums of deviations from the mean then have the expected value of the variance of
    the total, however units are divided into clusters. ``squares`` and ``count`` are of values
    without a unit, of which each is a cluster of its own.
    """

    sums: list[float] = []
    counts: list[int] = []
    total: float = 0.0
    squares: float = 0.0
    count: int = 0

    def add(self, values: Floats, units: Sequence[str | None]) -> "ClusterSums":
        alone = np.array([unit is None for unit in units])
        # Sums in sequence do not depend on how the values are divided between calls.
        total, squares = self.total, self.squares
        for value in values[alone].tolist():
            total, squares = total + value, squares + value * value
        sums, counts = self.sums, self.counts
        if not alone.all():
            sums = list(sums) or [0.0] * CLUSTERS
            counts = list(counts) or [0] * CLUSTERS
            for value, unit in zip(values.tolist(), units, strict=True):
                if unit is not None:
                    sums[cluster_of(unit)] += value
                    counts[cluster_of(unit)] += 1
        return ClusterSums(sums, counts, total, squares, self.count + int(alone.sum()))

    def variance(self, mean: float) -> float:
        """The estimated variance of the sum of all values, whose mean is ``mean``."""
        alone = self.squares - 2 * mean * self.total + self.count * mean**2
        deviations = np.array(self.sums) - mean * np.array(self.counts)
        return float(max(alone, 0.0) + (deviations**2).sum())


@lru_cache(4096)
def cluster_of(unit: str) -> int:
    """The number of the cluster of a unit."""
    return _hash(unit) % CLUSTERS


MAX_UNITS = 4096
"""Units that are remembered: if more come, half of them are forgotten, and of further units only
half as many are counted. 4096 numbers take about 40 kB."""
HASH_BITS = 64


class UnitSample(msgspec.Struct):
    """A sample of the units that came, each of which was counted once.

    A unit belongs to the sample if its hash is below 2^(64 − ``halvings``), so it is known for
    certain whether a unit of the sample was counted before, and the sample does not depend on what
    the units did. ``known`` has the hashes in the order in which they came, so the same log
    gives the same bytes.
    """

    known: dict[int, None] = {}
    halvings: int = 0

    def is_new(self, unit: str) -> bool:
        """Whether a unit belongs to the sample and comes for the first time."""
        hashed = _hash(f"sample {unit}")
        if hashed >> (HASH_BITS - self.halvings) or hashed in self.known:
            return False
        self.known[hashed] = None
        while len(self.known) > MAX_UNITS:
            self.halvings += 1
            limit = HASH_BITS - self.halvings
            self.known = {one: None for one in self.known if not one >> limit}
        return True


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


TYPICAL_VARIANCE = 0.05
"""The variance of rewards, as a share of their squared range, for which intervals are narrowest:
that of a reward of 1 that comes with a chance of 5 %."""
PLANNED_DECISIONS = 10_000
"""The number of decisions about which intervals are narrowest."""


class Lift(NamedTuple):
    """An estimate, and an interval that holds the truth at all times with the given chance.

    ``exact`` is false if rewards have no bounds, or if decisions of the same unit depend on each
    other: then the interval holds for large samples only.
    """

    estimate: float
    low: float
    high: float
    exact: bool


class LiftTally(msgspec.Struct, frozen=True):
    """Sums from which the lift follows: constant memory, however many decisions there were.

    Every decision belonged to the holdout with the chance ``share`` (h). With w = 1 / (1 − h) if
    it did not, and w = −1 / h if it did, and with any number m that was known before the decision,
    x = (r − m) w has the expected value E[r | bandit] − E[r | holdout]. The mean of x estimates
    the mean of this difference over the decisions so far. Here m is the mean of the rewards so
    far, which makes the noise of x small; ``start`` counts as one reward before all others, and
    must be within the bounds of rewards, so |r − m| is at most their range.

    If the share changes, a new tally begins, because the interval is valid only for numbers that
    were fixed before the first decision.

    **Exact**: for rewards within bounds and decisions without units, whose groups are drawn
    independently. Sums S = Σ (x − E x) and V = Σ x² then give supermartingales for every size of
    bet, and the interval is valid for any number of decisions, although the lift may change with
    time and the bandit learns.

    **For large samples**: rewards without bounds need a variance. Decisions of one unit share a
    group, so V is the sum of squares of clusters of units (``ClusterSums``). S is then no sum
    of independent parts. If rewards of a unit are not correlated negatively, S crosses the boundary
    at most as often as a sum of independent parts with the same variances (Slepian's inequality).

    Reference: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2024), for importance weights;
    Howard, Ramdas, McAuliffe and Sekhon (2021), for intervals at all times; Waudby-Smith, Arbour,
    Sinha, Kennedy and Ramdas (2024), for large samples.
    """

    share: float
    start: float = 0.0
    decisions: int = 0
    held_out: int = 0
    reward_sum: float = 0.0
    sum: float = 0.0
    squares: float = 0.0
    held_out_reward: float = 0.0
    clusters: ClusterSums | None = None

    def add(
        self, reward: Floats, held_out: Booleans, units: Sequence[str | None] | None = None
    ) -> "LiftTally":
        """Return the tally with further decisions; ``units`` is None if no decision has one.

        The order of decisions matters, but not how they are divided between calls.
        """
        sums = _running(self.reward_sum, reward)
        centre = (self.start + sums[:-1]) / (1 + self.decisions + np.arange(len(reward)))
        x = (reward - centre) * np.where(held_out, -1 / self.share, 1 / (1 - self.share))
        return LiftTally(
            self.share,
            self.start,
            self.decisions + len(reward),
            self.held_out + int(held_out.sum()),
            float(sums[-1]),
            float(_running(self.sum, x)[-1]),
            float(_running(self.squares, x**2)[-1]),
            float(_running(self.held_out_reward, reward[held_out])[-1]),
            self._clustered(x, [None] * len(x) if units is None else units),
        )

    def _clustered(self, x: Floats, units: Sequence[str | None]) -> ClusterSums | None:
        """The sums by clusters; None as long as no decision has a unit."""
        if self.clusters is None and all(unit is None for unit in units):
            return None
        # The decisions without units so far are clusters of their own.
        alone = ClusterSums([], [], self.sum, self.squares, self.decisions)
        return (self.clusters or alone).add(x, units)

    @property
    def means(self) -> tuple[float, float]:
        """The mean rewards of the bandit and of the holdout; NaN without decisions."""
        others = self.decisions - self.held_out
        rest = self.reward_sum - self.held_out_reward
        return (
            rest / others if others else math.nan,
            self.held_out_reward / self.held_out if self.held_out else math.nan,
        )

    def lift(self, bounds: tuple[float, float] | None, error: float = 0.05) -> Lift:
        """Return the lift per decision, for rewards within ``bounds``.

        At all times together the truth is outside the interval with at most the chance ``error``.
        """
        clusters = self.clusters
        exact = bounds is not None and clusters is None
        limit = math.inf if bounds is None else bounds[1] - bounds[0]
        if self.decisions == 0:
            return Lift(math.nan, -limit, limit, exact)
        estimate = self.sum / self.decisions
        if exact:
            width = mixture_boundary(self.squares, error, *self.boundary_of(limit))
        else:
            variance = self.squares if clusters is None else clusters.variance(estimate)
            deviation = math.sqrt(variance / self.decisions)
            width = deviation * mixture_boundary(self.decisions, error, 0.0, PLANNED_DECISIONS)
        half = width / self.decisions
        return Lift(estimate, max(estimate - half, -limit), min(estimate + half, limit), exact)

    def boundary_of(self, span: float) -> tuple[float, float]:
        """The largest |x|, and the Σ x² at which the interval is narrowest, for this span."""
        typical = TYPICAL_VARIANCE * span**2 / (self.share * (1 - self.share))
        return span / min(self.share, 1 - self.share), PLANNED_DECISIONS * typical


def _running(before: float, values: Floats) -> Floats:
    """The running sums; added in sequence, they do not depend on how the values are divided."""
    return np.cumsum(np.concatenate([[before], values]))


class GroupComparison(msgspec.Struct):
    """What is known about the difference between a bandit and a group, in constant memory.

    ``since`` is the position of the settings by which groups are drawn. ``counted`` are the draws
    of different units and of decisions without a unit; ``chosen`` of these were in the group.
    """

    since: int = 0
    start: float = 0.0
    tally: LiftTally | None = None
    counted: int = 0
    chosen: int = 0
    sample: UnitSample = msgspec.field(default_factory=UnitSample)

    def add(
        self,
        since: NDArray[np.int64],
        share: Floats,
        in_group: Booleans,
        reward: Floats,
        units: list[Any],
    ) -> None:
        """Take further decisions into account, in the order in which they matured.

        Decisions with other shares or other actions are not comparable: then all begins again.
        """
        changes = np.flatnonzero((np.diff(since) != 0) | (np.diff(share) != 0)) + 1
        for first, last in pairwise([0, *changes.tolist(), len(since)]):
            drawn_since, drawn_share = int(since[first]), float(share[first])
            part = slice(first, last)
            if drawn_since < self.since:
                # Another process had not read the newest settings when it decided.
                continue
            if self.tally is None or drawn_since > self.since or drawn_share != self.tally.share:
                self.since, self.counted, self.chosen = drawn_since, 0, 0
                self.sample, self.tally = UnitSample({}), LiftTally(drawn_share, self.start)
            self.tally = self.tally.add(reward[part], in_group[part], units[part])
            for is_chosen, unit in zip(in_group[part].tolist(), units[part], strict=True):
                if unit is None or self.sample.is_new(unit):
                    self.counted += 1
                    self.chosen += is_chosen


HOLDOUT, CONTROL = "holdout", "control"


def new_comparisons(settings: Settings) -> dict[str, GroupComparison]:
    """The comparisons of a bandit, by group, before its first decision."""
    bounds = settings.scale.bounds
    start = settings.default_reward or 0.0 if bounds is None else bounds[0]
    return {group: GroupComparison(start=start) for group in (HOLDOUT, CONTROL)}


def compare(
    comparisons: Mapping[str, GroupComparison],
    groups: Sequence[ExperimentAssignment],
    reward: Floats,
    units: Sequence[str | None],
) -> None:
    """Add decisions, in the order in which they matured, to the comparisons they belong to."""
    since = np.array([one.since for one in groups], np.int64)
    is_held_out = np.array([one.group == HOLDOUT for one in groups])
    is_control = np.array([one.group == CONTROL for one in groups])
    holdout = np.array([one.holdout_share for one in groups])
    # Only decisions that were not held out could be the control.
    control = np.where(is_held_out, 0.0, [one.control_share for one in groups])
    for group, share, chosen in ((HOLDOUT, holdout, is_held_out), (CONTROL, control, is_control)):
        which = np.flatnonzero(share > 0)
        if len(which):
            of_these = [units[place] for place in which.tolist()]
            comparisons[group].add(
                since[which], share[which], chosen[which], reward[which], of_these
            )


CONCENTRATION = 200.0
"""How strongly the alternatives of the test gather around the expected share: those that differ
from it by some hundredths are found soonest."""
SAMPLE_RATIO_ERROR = 0.01
"""The probability of a false alarm, at all looks together."""


def sample_ratio(expected: float, chosen: int, count: int) -> SampleRatioReport:
    """Test the ``chosen`` of ``count`` independent draws with the chance ``expected``.

    The p-value is valid at every look: if the group is drawn as it should be, the chance that it is
    ever below ε is at most ε.
    """
    evidence = float(log_evidence(expected, np.array(chosen), np.array(count)))
    p_value = float(np.exp(-max(evidence, 0.0)))
    observed = chosen / count if count else expected
    return SampleRatioReport(expected, observed, p_value, p_value < SAMPLE_RATIO_ERROR)


def log_evidence(expected: float, chosen: Integers, count: Integers) -> Floats:
    """Return the logarithm of the evidence against the expected share.

    It is the likelihood of the counts under shares with a beta distribution around the expected
    share, divided by that under the expected share: a martingale of mean 1 if the draws have the
    expected share. By Ville's inequality it ever reaches 1 / ε with a chance of at most ε.

    Reference: Lindon and Malek (2022), anytime-valid inference for multinomial count data.
    """
    first, second = CONCENTRATION * expected, CONCENTRATION * (1 - expected)
    others = count - chosen
    betaln = scipy.special.betaln
    mixed = betaln(first + chosen, second + others) - betaln(first, second)
    evidence: Floats = mixed - chosen * np.log(expected) - others * np.log1p(-expected)
    return evidence


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
            "this bandit has neither a holdout nor a control, so there is nothing to compare "
            "it with: set guard rails such as {'holdout': 0.1, 'baseline': 'A'}, and wait until "
            "decisions have matured"
        )
    reports = []
    for against, share, action, aa_test in (
        (HOLDOUT, rails.holdout, rails.baseline, rails.aa_test),
        (CONTROL, rails.control_share, rails.control, False),
    ):
        found = comparisons[against]
        if found.since < since:
            # No decision has matured since the groups changed.
            found = GroupComparison(since, found.start)
        if share:
            reports.append(_report(settings, against, action, found, share, aa_test))
    return reports


def _report(
    settings: Settings,
    against: str,
    action: Any,
    comparison: GroupComparison,
    share: float,
    aa_test: bool,
) -> LiftReport:
    tally = comparison.tally or LiftTally(share, comparison.start)
    bounds, chosen, counted = settings.scale.bounds, comparison.chosen, comparison.counted
    lift, (mean, mean_of_group) = tally.lift(bounds, ERROR), tally.means
    enough = lift.exact or min(chosen, counted - chosen) >= FEWEST
    # With reward_wait 0 decisions are counted only when a reward comes.
    ratio = sample_ratio(tally.share, chosen, counted) if settings.reward_wait > 0 else None
    differs = False
    if aa_test and enough:
        strict = tally.lift(bounds, AA_ERROR)
        differs = not strict.low <= 0.0 <= strict.high
    return LiftReport(
        against=against,
        action=action,
        # The difference of the means varies less than the estimate on which the interval is built,
        # and people check it.
        estimate=_finite(float(np.clip(mean - mean_of_group, lift.low, lift.high))),
        low=_finite(lift.low) if enough else None,
        high=_finite(lift.high) if enough else None,
        exact=lift.exact and settings.reward_wait > 0,
        mean=_finite(mean),
        mean_of_group=_finite(mean_of_group),
        decisions=tally.decisions - tally.held_out,
        decisions_of_group=tally.held_out,
        sample_ratio=ratio,
        aa_test=aa_test,
        alarm=differs or (ratio is not None and ratio.alarm),
        cautions=[*_cautions(settings, tally, enough, ratio, differs)],
    )


def _cautions(
    settings: Settings,
    tally: LiftTally,
    enough: bool,
    ratio: SampleRatioReport | None,
    differs: bool,
) -> Iterator[str]:
    """What the interval relies on; the last sentence is the reason of an alarm."""
    if not enough:
        yield (
            f"there is no interval yet: each group needs at least {FEWEST} units (or decisions "
            "without a unit)"
        )
    if settings.scale.bounds is None:
        yield (
            "rewards have no bounds, so the interval is approximate in small samples: declare low "
            "and high if you know them"
        )
    if tally.clusters is not None:
        yield "the interval is clustered by unit, and approximate for few units"
    if settings.reward_wait == 0:
        yield (
            "with reward_wait=0 a decision counts when its reward arrives, which is "
            "unfair to a group whose rewards arrive later or less often: set a "
            "reward_wait"
        )
    elif settings.default_reward is None:
        yield "decisions without a reward do not count"
    if ratio is not None and ratio.alarm:
        yield (
            f"the group has a share of {ratio.observed:.4g} instead of {ratio.expected:.4g}, so "
            "decisions of one group are lost or counted twice: do not trust the lift"
        )
    elif differs:
        yield (
            "both groups get the same policy, but their rewards differ: look for an error in how "
            "actions are displayed or rewards are sent"
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
