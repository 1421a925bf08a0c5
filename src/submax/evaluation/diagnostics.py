"""How far an estimate can be trusted: diagnostics, and warnings as sentences."""

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.estimators import Evidence, OffPolicyEstimator
from submax.evaluation.evidence import LoggedEvidence
from submax.evaluation.intervals import normal_quantile
from submax.evaluation.log import Log
from submax.evaluation.sums import Additive, Moments, Range, TermSums, mean, total
from submax.schema.actions import ChoiceIndices


class Caution(NamedTuple):
    """A sentence that says why some estimates should not be trusted.

    ``about`` says which estimates: those that rely on the `weights`, the `propensities`, the
    `slots`, the `groups` of actions, the `sessions`, those that change `single decisions` and leave
    the rest of a session to the log, those by `replay`, those that rely on the `model` of rewards
    alone, or `all`.
    """

    about: str
    sentence: str

    def concerns(self, estimator: OffPolicyEstimator) -> bool:
        """Return whether the caution concerns the estimates of this estimator."""
        return {
            "weights": estimator.uses_weights,
            "propensities": estimator.uses_propensities,
            "model": estimator.uses_model and not estimator.uses_weights,
            "slots": estimator.uses_slots,
            "groups": estimator.uses_groups,
            "sessions": estimator.uses_sessions,
            "single decisions": not estimator.uses_sessions,
            "replay": estimator.short == "replay",
            "all": True,
        }[self.about]


SIGNIFICANT_ERRORS = 4.0
"""A difference of more standard errors than this is not explained by chance: for a normal mean
this happens once in 16,000 times."""
EXPECTED_LARGE_TERMS = 10.0
"""If 10 terms as large as the largest one are expected, the chance of observing none is e⁻¹⁰,
about 1 in 22,000."""
SMALLEST_ERROR = 1e-9
"""Standard errors are at least this, so that rounding in a constant column is not significant."""


class Diagnostics(NamedTuple):
    """Diagnostics of the weights w = π / p of one policy over n ``rows``.

    ``effective`` is the effective sample size (Σ w)² / Σ w², ``largest`` the largest weight and
    ``largest_share`` its share of Σ w. ``mean_weight`` should be 1, up to ``mean_error``, its
    standard error; it is less if the logging policy could not take some actions of the policy.
    ``unsupported`` is the policy's probability of choices that none of the evaluated rows took.
    ``effective_rewards`` are the effective rows whose reward is not ``usual``, the reward with the
    largest share of Σ w: the share of the other rewards, times ``effective``.
    """

    rows: int
    effective: float
    largest: float
    largest_share: float
    mean_weight: float
    mean_error: float
    unsupported: float
    effective_rewards: float
    usual: float

    @classmethod
    def of_weights(cls, weight: Floats, reward: Floats) -> "Diagnostics":
        """Return the diagnostics of weights and of the rewards of the same rows."""
        return WeightSums.of(weight, reward, np.unique(reward)).diagnostics()


class WeightSums(Additive, frozen=True):
    """Sums over weights w, which are measured from 1.

    ``off`` is Σ c (w − 1), ``square`` is Σ c (w − 1)², ``size`` is Σ c |w|, and ``by_reward`` the
    part of ``size`` of the rows with each of the ``rewards``; ``sizes`` is the range of |w|.
    Weights that were added up over slots may be negative: all but the mean are then those of |w|.
    """

    shared = ("rewards",)

    decisions: float
    off: float
    square: float
    size: float
    sizes: Range
    rewards: Floats
    by_reward: Floats

    @classmethod
    def of(
        cls,
        weight: Floats,
        reward: Floats | None = None,
        rewards: Floats | None = None,
        count: Floats | None = None,
    ) -> "WeightSums":
        """Return the sums over some rows; ``rewards`` are those to distinguish, sorted."""
        distance, size = weight - 1, np.abs(weight)
        counted = distance if count is None else count * distance
        sized = size if count is None else count * size
        kinds, by_reward = np.zeros(1), np.array([float(sized.sum())])
        if reward is not None and rewards is not None:
            place = np.minimum(np.searchsorted(rewards, reward), len(rewards) - 1)
            same = rewards[place] == reward
            by = np.bincount(place[same], sized[same], minlength=len(rewards))
            kinds, by_reward = rewards, by.astype(np.float64)
        return cls(
            total(weight, count),
            float(counted.sum()),
            float(counted @ distance),
            float(sized.sum()),
            Range.of(size),
            kinds,
            by_reward,
        )

    def diagnostics(self, unsupported: float = 0.0, scale: float = 1.0) -> Diagnostics:
        """Return the diagnostics; the weights are multiplied by ``scale`` before."""
        count, off = self.decisions, self.off
        square = self.square + 2 * off + count
        most = int(np.argmax(self.by_reward))
        share = float(self.by_reward[most]) / self.size if self.size > 0 else 1.0
        effective = self.size**2 / square if square > 0 else 0.0
        variance = max(self.square / count - (off / count) ** 2, 0.0)
        return Diagnostics(
            rows=round(count),
            effective=effective,
            largest=scale * self.sizes.high,
            largest_share=self.sizes.high / self.size if self.size > 0 else 0.0,
            mean_weight=scale * (1 + off / count),
            mean_error=scale * float(np.sqrt(variance / count)),
            unsupported=unsupported,
            effective_rewards=(1 - share) * effective,
            usual=float(self.rewards[most]),
        )


def errors_from_one(average: float, error: float, decisions: float, largest: float) -> float:
    """Return the signed distance of a mean of terms from 1, in its standard errors.

    If the mean is below 1, terms as large as ``largest`` may be so rare that none was observed:
    the standard error is increased by what such terms could have added.
    """
    difference = average - 1
    unobserved = 0.0
    if difference < 0:
        unobserved = EXPECTED_LARGE_TERMS / SIGNIFICANT_ERRORS * largest / decisions
    # Terms that are all equal, such as those of a log with one action, have no error.
    return difference / max(error + unobserved, SMALLEST_ERROR)


FEWEST_TAKEN = 30
"""Rows that a choice must have to be checked: with 30 terms a mean is about normal."""


class PropensityCalibration(NamedTuple):
    """How well the propensities of one choice agree with how often it was taken.

    Over the rows that took a choice, Σ 1 / p is on average the number of rows in which the choice
    was eligible, times the number of joint actions that contain it. ``ratio`` is the sum over this
    expectation. ``z`` is the distance of the ratio from 1 in standard errors; it allows for rare
    rows that happen not to have occurred. ``error`` is the standard error without this allowance.
    """

    slot: str
    choice: str
    ratio: float
    z: float
    error: float

    @property
    def plausible(self) -> bool:
        """Whether chance explains the distance of the ratio from 1."""
        return not abs(self.z) > SIGNIFICANT_ERRORS


class ChoiceFacts(NamedTuple):
    """One choice of a slot: its ``rows``, their mean ``reward``, and its ``calibration``.

    The reward is NaN if no row took the choice. The calibration is None if too few rows took it.
    """

    slot: str
    name: str
    rows: int
    reward: float
    calibration: PropensityCalibration | None

    def row(self) -> dict[str, Any]:
        """Return the facts as a row of a table, with the numbers of the calibration."""
        checked = self.calibration
        return {
            "slot": self.slot,
            "action": self.name,
            "rows": self.rows,
            "mean_reward": self.reward,
            "ratio": None if checked is None else checked.ratio,
            "z": None if checked is None else checked.z,
        }


class SetSums(Additive, frozen=True):
    """The decisions with one set of eligible choices, and the range of their propensities."""

    decisions: float
    propensities: Range


EXTREMES = 2
"""Lowest and highest rewards that are kept: the outlier, and the next one."""
MOST_DISTINCT = 3
"""Different rewards that are remembered: whether there are more than two matters."""


class LogSums(Additive, frozen=True):
    """Sums over the evaluated rows of a log.

    ``choices`` has for each slot, for each of its choices, ``[choices, 4]``: the decisions that
    took it, their rewards, and Σ s and Σ s² of s = 1 / (p · the joint actions that contain it).
    ``by_set`` are the sets of eligible choices. ``rewards`` are the moments of the rewards minus
    ``centre``, ``ends`` the lowest and the highest rewards, and ``distinct`` some of them.
    """

    shared = ("centre", "ends", "distinct")

    choices: list[Floats]
    by_set: dict[ChoiceIndices, SetSums]
    rewards: Moments
    centre: float
    ends: Floats
    distinct: frozenset[float]
    propensity: float
    estimated: float
    raised: int

    @classmethod
    def of(cls, log: Log, centre: float) -> "LogSums":
        """Return the sums over the rows of a batch."""
        sets, count, menu = log.eligible_set, log.count, log.schema.menu
        decisions = np.bincount(sets, count, minlength=len(log.eligible_sets))
        low, high = np.full(len(decisions), np.inf), np.zeros(len(decisions))
        np.minimum.at(low, sets, log.propensity)
        np.maximum.at(high, sets, log.propensity)
        by_set = {
            one: SetSums(float(decisions[place]), Range(float(low[place]), float(high[place])))
            for place, one in enumerate(log.eligible_sets)
            if decisions[place] > 0
        }
        ones = np.ones(len(log)) if count is None else count
        choices = []
        for slot, one in enumerate(menu.slots):
            containing = np.array([_containing(each, slot, log) for each in log.eligible_sets])
            chosen = log.action[:, slot].astype(np.int64)
            score = 1.0 / (log.propensity * containing[sets])
            eligible = log.eligible_choices(slot)[sets, chosen] * ones
            columns = [ones, ones * log.reward, eligible * score, eligible * score**2]
            size = len(one.choices)
            sums = [np.bincount(chosen, each, minlength=size) for each in columns]
            choices.append(np.stack(sums, axis=1).astype(np.float64))
        return cls(
            choices,
            by_set,
            Moments.of([log.reward - centre], len(log), count),
            centre,
            _extremes(log.reward, count),
            frozenset(np.unique(log.reward)[:MOST_DISTINCT].tolist()),
            float(ones @ log.propensity),
            float(ones @ log.estimated),
            0 if log.raised is None else int(np.count_nonzero(log.raised > 1)),
        )

    def __add__(self, other: Self) -> Self:
        # The extremes of both are neither added nor shared.
        return msgspec.structs.replace(
            super().__add__(other),
            ends=_extremes(np.concatenate([self.ends, other.ends]), None),
            distinct=frozenset(sorted(self.distinct | other.distinct)[:MOST_DISTINCT]),
        )

    @property
    def decisions(self) -> int:
        """The number of decisions."""
        return round(self.rewards.decisions)

    @property
    def mean_reward(self) -> float:
        """The mean reward of a decision."""
        return self.centre + float(self.rewards.first[0]) / self.rewards.decisions

    @property
    def propensities(self) -> tuple[float, float, float]:
        """The lowest, the mean and the highest propensity."""
        low, high = reduce(add, (one.propensities for one in self.by_set.values()))
        return low, self.propensity / self.rewards.decisions, high

    @property
    def is_uniform(self) -> bool:
        """Whether rows with the same eligible choices have about the same propensity."""
        ranges = [one.propensities for one in self.by_set.values()]
        return not any(one.high > (1 + UNIFORM_TOLERANCE) * one.low for one in ranges)

    def facts(self, log: Log) -> list[ChoiceFacts]:
        """Return the facts about every choice, the most frequent choice of each slot first.

        ``log`` has any rows of the log, whose actions it describes.
        """
        found = []
        for place, slot in enumerate(log.schema.menu.slots):
            table = self.choices[place]
            for index in np.argsort(-table[:, 0], kind="stable"):
                rows, earned = table[index, :2]
                name, checked = slot.choices[index].name, None
                # Choices that were rarely or never taken are reported as a lack of support.
                if rows >= FEWEST_TAKEN:
                    checked = self._calibration(place, int(index), slot.name, name, log)
                average = float(earned / rows) if rows else float("nan")
                found.append(ChoiceFacts(slot.name, name, int(rows), average, checked))
        return found

    def _calibration(
        self, slot: int, index: int, slot_name: str, name: str, log: Log
    ) -> PropensityCalibration:
        """Return the calibration of a choice.

        Its terms are s in the rows that took it, and 0 in other rows in which it was eligible.
        """
        among = largest = 0.0
        for eligible, one in self.by_set.items():
            if index in eligible[slot]:
                among += one.decisions
                largest = max(
                    largest, 1 / (one.propensities.low * _containing(eligible, slot, log))
                )
        among = max(among, 1.0)
        _, _, total, square = self.choices[slot][index]
        ratio = float(total / among)
        error = float(np.sqrt(max(float(square) - among * ratio**2, 0.0)) / among)
        z = errors_from_one(ratio, error, among, largest)
        return PropensityCalibration(slot_name, name, ratio, z, error)


def _containing(eligible: ChoiceIndices, slot: int, log: Log) -> float:
    """Return the number of eligible joint actions that contain an eligible choice of a slot."""
    sizes = [float(len(indices)) for indices in eligible]
    volume = float(np.prod([one.high - one.low for one in log.schema.menu.ranges]))
    return float(np.prod(sizes)) * volume / sizes[slot]


def _extremes(reward: Floats, count: Floats | None) -> Floats:
    """Return the lowest and the highest rewards, sorted; all of them if there are few."""
    if len(reward) > 2 * EXTREMES:
        order = np.argpartition(reward, [EXTREMES - 1, len(reward) - EXTREMES])
        few = np.concatenate([order[:EXTREMES], order[-EXTREMES:]])
        reward, count = reward[few], None if count is None else count[few]
    times = 1 if count is None else np.minimum(count, EXTREMES).astype(np.int64)
    found: Floats = np.sort(np.repeat(reward, times))
    if len(found) > 2 * EXTREMES:
        found = np.concatenate([found[:EXTREMES], found[-EXTREMES:]])
    return found


FEWEST_REWARDS = 10.0
"""Effective rows with a reward other than the most frequent one below which there is a caution:
with 10 of them the standard error is a third of the value."""
LARGEST_REWARD_SHARE = 0.25
"""One row with more than this share of the variance of all rewards makes intervals unreliable."""


def rare_reward_cautions(found: Diagnostics) -> Iterator[Caution]:
    """Yield a caution if too few rows that count for the policy were rewarded.

    Rows are counted by their weights. A reward counts if it differs from the usual one.
    """
    if found.effective_rewards >= FEWEST_REWARDS:
        return
    rows = "rewarded rows" if found.usual == 0 else f"rows with a reward other than {found.usual:g}"
    if found.effective_rewards == 0:
        sentence = (
            f"no {rows} count for this policy: only the far end of the interval is informative"
        )
    else:
        sentence = (
            f"only {found.effective_rewards:.1f} {rows} count for this policy; "
            f"{FEWEST_REWARDS:g} are needed"
        )
    yield Caution("all", sentence)


def large_reward_cautions(log: LogSums) -> Iterator[Caution]:
    """Yield a caution if one reward decides, although rewards have more than two values."""
    average, variance, _ = log.rewards.central(np.ones(1))
    distance = (log.ends - log.centre - average) ** 2
    spread, row = variance * log.rewards.decisions, int(np.argmax(distance))
    # The rarer one of two values is no outlier, and there is a caution about rare rewards.
    if len(log.distinct) <= 2 or not distance[row] > LARGEST_REWARD_SHARE * spread:
        return
    others = np.delete(log.ends, row)
    yield Caution(
        "all",
        f"one row has the reward {log.ends[row]:g} and causes "
        f"{distance[row] / spread:.0%} of the variance of all rewards (the others "
        f"are from {others.min():g} to {others.max():g}): check this row, which "
        "dominates every number",
    )


FEWEST_EFFECTIVE = 100.0
"""Effective rows below which weighted estimates are doubtful: the normal approximation of their
intervals needs about this many."""
LEAST_EFFECTIVE_SHARE = 0.01
"""The same as a share of all rows: below it a few rows decide, however many rows there are."""
LARGEST_WEIGHT_SHARE = 0.05
"""One row with more than this share of all weight makes intervals unreliable."""
MOST_UNSUPPORTED = 0.01
"""Probability of untaken actions up to which a policy counts as covered by the log."""
MOST_NAMES = 5
"""Names of choices that a sentence lists."""


def mean_weight_cautions(found: Diagnostics, z: float, about: str = "weights") -> Iterator[Caution]:
    """Yield a caution if the mean weight is farther from 1 than chance explains, by its ``z``."""
    if abs(z) > SIGNIFICANT_ERRORS:
        why = "the log could not take some of its actions, or " if z < 0 else ""
        yield Caution(
            about,
            f"the weights average {found.mean_weight:.2f} and should average 1, and chance does "
            f"not explain the difference: {why}the propensities are wrong",
        )


def spread_cautions(found: Diagnostics, about: str = "weights") -> Iterator[Caution]:
    """Yield a caution if few rows have most of the weight."""
    weights = {
        "slots": "slot weights",
        "groups": "group weights",
        "sessions": "session weights",
    }.get(about, "weights")
    unit = "session" if about == "sessions" else "row"
    if _few(found):
        yield Caution(
            about,
            f"by the {weights} the effective sample size is {found.effective:.0f} of "
            f"{found.rows} {unit}s, which is too small: the policy differs too much "
            "from the log",
        )
    if found.largest_share > LARGEST_WEIGHT_SHARE:
        yield Caution(
            about,
            f"one {unit} has {found.largest_share:.0%} of the sum of all {weights} (its weight is "
            f"{found.largest:.3g}): intervals are too short",
        )


def _about_model(average: float, error: float) -> Caution:
    """Return the caution for the direct method, whose model errors nothing corrects."""
    if abs(average) > SIGNIFICANT_ERRORS * error:
        return Caution(
            "model",
            f"the model of rewards is off by {average:+.2g}",
        )
    return Caution("model", "the interval of dm does not include the error of its model of rewards")


def _few(found: Diagnostics) -> bool:
    few = found.effective < FEWEST_EFFECTIVE
    return few or found.effective < LEAST_EFFECTIVE_SHARE * found.rows


def kind_of(sentence: str) -> str:
    """Return a sentence without its numbers and names: equal for warnings of the same kind.

    >>> kind_of("one row has 7% of all weight") == kind_of("one row has 31% of all weight")
    True
    """
    return re.sub(r"\([^)]*\)|'[^']*'|[-+]?\d[\w.,+%-]*", "#", sentence)


UNIFORM_TOLERANCE = 0.01
"""Relative difference of propensities up to which a log counts as uniform, or two propensities as
equal: logged propensities are often rounded to two or three digits."""
FLOOR_LEVEL = 0.95
"""Level of the upper bound of the bias of a floor of the propensities."""


def log_cautions(
    log: LogSums, choices: Sequence[ChoiceFacts], logged: LoggedEvidence
) -> Iterator[Caution]:
    """Yield the cautions that concern the log, and so all policies.

    ``logged`` are the rows, or a sample of them, to which models were fitted.
    """
    menu, decisions = logged.log.schema.menu, log.decisions
    if log.estimated:
        yield Caution(
            "propensities",
            f"{log.estimated:.0f} of {decisions} propensities are estimated: these numbers are "
            "only as good as the model of how the log chose its actions",
        )
    if all(len(slot.choices) < 2 for slot in menu.slots) and menu.slots:
        yield Caution("all", "the log has only one action, so there is nothing to compare")
    checked = [one.calibration for one in choices if one.calibration is not None]
    worst = max(checked, key=lambda one: abs(one.z), default=None)
    if worst is not None and not worst.plausible:
        yield Caution(
            "propensities",
            f"the propensities of {worst.choice!r} do not match how often it was taken: "
            f"their inverses add up to {worst.ratio:.2f} times the expected sum, and "
            "chance does not explain the difference",
        )
    rarest = log.propensities[0]
    if not menu.ranges and rarest * decisions < 1:
        yield Caution(
            "propensities",
            f"a propensity is as small as {rarest:.2g}: among {decisions} rows less than one "
            "with such a propensity is expected, so a wrong propensity cannot be "
            "distinguished from a rare event",
        )
    if not log.is_uniform:
        yield Caution("replay", "replay needs a uniform log, and the propensities of this log vary")
    yield from large_reward_cautions(log)
    if logged.groups is not None and logged.groups.estimated:
        yield Caution(
            "groups",
            "the propensities of groups of actions are estimated",
        )
    yield from _about_slots(logged)


EDGES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Ends of the intervals of weights, each twice the one before. Weights average 1; the last interval
has no end."""


class Overlap(Additive, frozen=True):
    """``rows`` and the sum of weights, ``weight``, in each interval of weights.

    The first interval is the weight 0; the next one is from above 0 to ``EDGES[1]``, and so on; the
    last one is above ``EDGES[-1]``. A policy that resembles the log has weights near 1. If few rows
    have most of the sum, the estimates rely on these rows.
    """

    rows: list[int]
    weight: list[float]

    @classmethod
    def of(cls, weight: Floats, count: Floats | None = None) -> "Overlap":
        """Return the distribution of the weights of all rows, each of ``count`` decisions.

        >>> Overlap.of(np.array([0.0, 1.0, 1.0, 100.0])).rows
        [1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1]
        """
        place = np.searchsorted(EDGES, weight, side="left")
        places = len(EDGES) + 1
        rows = np.bincount(place, count, minlength=places).astype(np.int64)
        counted = weight if count is None else count * weight
        return cls(rows.tolist(), np.bincount(place, counted, minlength=places).tolist())

    @staticmethod
    def labels() -> list[str]:
        """Return the names of the intervals."""
        between = [f"{low:g} to {high:g}" for low, high in pairwise(EDGES)]
        return ["0", *between, f"above {EDGES[-1]:g}"]


class PolicySums(Additive, frozen=True):
    """Sums about a policy over its evaluated rows, and for each estimator those of its terms.

    ``moments`` are those of the importance weights w minus 1 and of w (r − q̂), with the reward r
    and the predicted reward q̂. ``lost`` are Σ l and Σ l² of l = w (c − 1), where c is the factor
    by which an estimated propensity was raised to its floor. ``weights`` are w times the sampling
    weight, whose sum is ``kept``; ``slots``, ``groups`` and ``sessions`` are the weights of each of
    these. ``errors`` is the range of |r − q̂|. ``slices`` are the sums over the rows of each
    slice.
    """

    moments: Moments
    lost: Floats
    weights: WeightSums
    kept: float
    slots: WeightSums | None
    groups: WeightSums | None
    sessions: WeightSums | None
    unsupported: float
    errors: Range
    overlap: Overlap
    estimates: dict[str, TermSums]
    slices: dict[Any, "PolicySums"]

    @classmethod
    def of(
        cls,
        about: Evidence,
        rewards: Floats,
        estimates: dict[str, TermSums],
        slices: dict[Any, "PolicySums"],
        log: Log | None = None,
    ) -> "PolicySums":
        """Return the sums over the rows of a batch; ``rewards`` are those to distinguish.

        ``log`` are the rows themselves, of which sessions and raised propensities are needed.
        """
        weight, count, sampling = about.weight, about.counts, about.sampling_weight
        decisions, error = total(weight, count), about.reward - about.predicted
        lost, slots, groups, sessions = np.zeros(2), None, None, None
        if log is not None and log.raised is not None:
            off = weight * (log.raised - 1)
            counted = off if count is None else count * off
            lost = np.array([counted.sum(), counted @ off])
        if about.slot_weight is not None:
            added = 1 - about.slot_weight.shape[1] + about.slot_weight.sum(axis=1)
            slots = WeightSums.of(added, count=count)
        if about.group_weight is not None:
            groups = WeightSums.of(about.group_weight, count=count)
        if about.sessions is not None and log is not None and log.session is not None:
            # Rows of one session have nearly the same weight: sessions count, not rows.
            through = np.bincount(log.session, about.sessions[:, 1])
            sessions = WeightSums.of(through.astype(np.float64))
        return cls(
            Moments.of([weight - 1, weight * error], len(weight), count),
            lost,
            WeightSums.of(
                weight if sampling is None else weight * sampling, about.reward, rewards, count
            ),
            decisions if sampling is None else decisions * mean(sampling, count),
            slots,
            groups,
            sessions,
            0.0 if about.unsupported is None else decisions * mean(about.unsupported, count),
            Range.of(np.abs(error)),
            Overlap.of(weight, count),
            estimates,
            slices,
        )

    @property
    def diagnostics(self) -> Diagnostics:
        """The diagnostics of the weights."""
        count = self.moments.decisions
        return self.weights.diagnostics(self.unsupported / count, count / self.kept)

    def cautions(
        self, log: LogSums, logged: LoggedEvidence, untaken: Sequence[str], same_rows: bool
    ) -> Iterator[Caution]:
        """Yield the cautions that concern the policy.

        ``untaken`` are choices that no evaluated row took, and ``same_rows`` says that the policy
        was learned from the rows on which it is evaluated.
        """
        found, count = self.diagnostics, self.moments.decisions
        if same_rows:
            yield Caution(
                "all",
                "the policy was learned from the rows on which it is evaluated, so it looks too "
                "good: learn it from a share of the rows",
            )
        if found.unsupported > MOST_UNSUPPORTED:
            never = ", ".join(untaken[:MOST_NAMES])
            yield Caution(
                "all",
                f"the policy gives {found.unsupported:.0%} of its decisions to actions that "
                f"no evaluated row took ({never}): the log says nothing about them",
            )
        off, variance, _ = self.moments.central(np.array([1.0, 0.0]))
        # The largest weight that can occur: the policy is sure of the rarest logged action.
        ranges = logged.log.schema.menu.ranges
        largest = found.largest if ranges else 1.0 / log.propensities[0]
        z = errors_from_one(1 + off, float(np.sqrt(variance / count)), count, largest)
        yield from mean_weight_cautions(found, z)
        yield from spread_cautions(found)
        yield from rare_reward_cautions(found)
        average, variance, _ = self.moments.central(np.array([0.0, 1.0]))
        yield _about_model(average, float(np.sqrt(variance / count)))
        yield from self._about_floor(log, logged)
        if self.groups is not None:
            yield Caution(
                "groups",
                "mips assumes, without a test, that actions with the same features earn the same",
            )
            yield from spread_cautions(self.groups.diagnostics(), "groups")
        if self.sessions is not None:
            yield Caution(
                "single decisions",
                "the estimate assumes, without a test, that a decision does not change "
                "what comes later in its session; per-decision does not assume it",
            )
            yield from mean_weight_cautions(found, z, "sessions")
            yield from spread_cautions(self.sessions.diagnostics(), "sessions")
        if self.slots is not None:
            yield from spread_cautions(self.slots.diagnostics(), "slots")

    def _about_floor(self, log: LogSums, logged: LoggedEvidence) -> Iterator[Caution]:
        """Yield a caution with a bound of the bias if estimated propensities were raised.

        Raising p to c p divides the weight w by c, so the mean of w (c − 1) is the share of the
        policy's decisions that is not counted. A decision that is not counted changes a weighted
        mean by its reward r, a self-normalized one by at most the range of the rewards, and a
        doubly robust one by r − q̂. The bound is the share times the largest of these.
        """
        if not log.raised:
            return
        count = self.moments.decisions
        lost, square = (float(one) / count for one in self.lost)
        if not lost > 0:
            return
        error = np.sqrt(max(square - lost**2, 0.0) / max(count - 1, 1))
        share = lost + normal_quantile(FLOOR_LEVEL) * float(error)
        low, high = logged.log.problem.scale.bounds or (float(log.ends[0]), float(log.ends[-1]))
        largest = max(abs(low), abs(high), high - low, self.errors.high)
        yield Caution(
            "propensities",
            f"{log.raised} estimated propensities were raised to a floor, which leaves out "
            f"{lost:.2%} of the decisions of the policy: the bias is at most "
            f"{min(share, 1.0) * largest:.2g}",
        )


def _about_slots(logged: LoggedEvidence) -> Iterator[Caution]:
    slots = logged.slot_propensity
    if slots is None:
        return
    if logged.slots_estimated:
        yield Caution(
            "slots",
            "the propensities of single slots are estimated: log them in columns propensity_SLOT",
        )
        return
    difference = np.abs(np.log(slots.prod(axis=1) / logged.log.propensity))
    if difference.mean() > UNIFORM_TOLERANCE:
        yield Caution(
            "slots",
            "the log did not choose its slots independently of each other, which the "
            "pseudo-inverse assumes",
        )
