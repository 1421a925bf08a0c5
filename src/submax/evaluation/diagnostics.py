"""How far an estimate can be trusted: diagnostics, and warnings as sentences."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.estimators import Evidence
from submax.evaluation.log import Log
from submax.statistics.sums import (
    Additive,
    Moments,
    Range,
    Terms,
    TermSums,
    Units,
    mean,
    sampled,
    total,
)

Caution = tuple[str, str]
"""Which estimates are doubtful, those that rely on `weights`, … or `all`; and a sentence why."""


def kind_of(sentence: str) -> str:
    """Return a sentence without its numbers and names: equal for warnings of the same kind.

    >>> kind_of("one row has 7% of all weight") == kind_of("one row has 31% of all weight")
    True
    """
    return re.sub(r"\([^)]*\)|'[^']*'|[-+]?\d[\w.,+%-]*", "#", sentence)


SIGNIFICANT_ERRORS = 4.0
"""A difference of more standard errors than this is not explained by chance: for a normal mean
this happens once in 16,000 times."""
EXPECTED_LARGE_TERMS = 10.0
"""If 10 terms as large as the largest one are expected, the chance of observing none is e⁻¹⁰,
about 1 in 22,000."""
SMALLEST_ERROR = 1e-9
"""Standard errors are at least this, so rounding in a constant column is not significant."""
FEWEST_TAKEN = 30
"""Rows that a choice must have to be checked: with 30 terms a mean is about normal."""
FEWEST_REWARDS = 10.0
"""Below this many effective rows with a reward other than the most frequent one there is a caution.
With 10 of them the standard error is a third of the value."""
LARGEST_REWARD_SHARE = 0.25
"""One row with more than this share of the variance of all rewards makes intervals unreliable."""
FEWEST_EFFECTIVE = 100.0
"""With fewer effective rows weighted estimates are doubtful: the normal approximation of their
intervals needs about this many."""
LEAST_EFFECTIVE_SHARE = 0.01
"""The same as a share of all rows: below it a few rows decide, however long the log is."""
LARGEST_WEIGHT_SHARE = 0.05
"""One row with more than this share of all weight makes intervals unreliable."""
MOST_UNSUPPORTED = 0.01
"""A policy counts as covered by the log if untaken actions have at most this probability."""
UNIFORM_TOLERANCE = 0.01
"""Propensities count as equal up to this relative difference: they are often logged with two or
three digits."""


def errors_from_one(
    average: Floats | float, error: Floats | float, decisions: Floats | float, largest: Any
) -> Any:
    """Return the signed distance of means of terms from 1, in their standard errors.

    If a mean is below 1, terms as large as ``largest`` may be so rare that none was observed: the
    standard error is increased by what such terms could have added.
    """
    could_add = EXPECTED_LARGE_TERMS / SIGNIFICANT_ERRORS * largest / decisions
    unobserved = np.where(np.less(average, 1), could_add, 0.0)
    # Terms that are all equal, such as those of a log with one action, have no error.
    return (average - 1) / np.maximum(error + unobserved, SMALLEST_ERROR)


NO_REWARD = np.zeros(1)
"""The only reward to distinguish, if rewards do not matter."""

# The weights of a policy --------------------------------------------------------------------------


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


class WeightSums(Additive, frozen=True):
    """Sums over weights w: the ``moments`` of w − 1 and of |w|, and the range of |w|.

    ``by_reward`` is Σ c |w| over the rows with each of the ``rewards``. Weights that were added up
    over slots may be negative: all but the mean are then those of |w|.
    """

    shared = ("rewards",)

    moments: Moments
    sizes: Range
    rewards: Floats
    by_reward: Floats

    @classmethod
    def of(
        cls,
        weight: Floats,
        count: Floats | float = 1.0,
        reward: Floats | float = 0.0,
        rewards: Floats = NO_REWARD,
    ) -> "WeightSums":
        """Return the sums over some rows; ``rewards`` are those to distinguish, sorted."""
        size, reward = np.abs(weight), np.broadcast_to(reward, len(weight))
        place = np.minimum(np.searchsorted(rewards, reward), len(rewards) - 1)
        known: Floats = count * size * (rewards[place] == reward)
        by_reward = np.bincount(place, known, len(rewards)).astype(np.float64)
        moments = Moments.of([weight - 1, size], len(weight), count)
        return cls(moments, Range.of(size), rewards, by_reward)

    def diagnostics(self, unsupported: float = 0.0, scale: float = 1.0) -> Diagnostics:
        """Return the diagnostics; the weights are multiplied by ``scale`` before."""
        count, square = self.moments.decisions, float(self.moments.sums[0, 2, 2])
        size = float(self.moments.first[1])
        off, variance, _ = self.moments.central([1.0, 0.0])
        most = int(np.argmax(self.by_reward))
        share = float(self.by_reward[most]) / size if size > 0 else 1.0
        effective = size**2 / square if square > 0 else 0.0
        others = max(round(1 - share, 12), 0.0)  # 0 also if rounding leaves a trace
        return Diagnostics(
            rows=round(count),
            effective=effective,
            largest=scale * self.sizes.high,
            largest_share=self.sizes.high / size if size > 0 else 0.0,
            mean_weight=scale * (1 + off),
            mean_error=scale * float(np.sqrt(variance / count)),
            unsupported=unsupported,
            effective_rewards=others * effective,
            usual=float(self.rewards[most]),
        )


class PolicySums(Additive, frozen=True):
    """Sums about a policy over its evaluated rows, and for each estimator those of its terms.

    ``mean_weight`` and ``model_error`` are the sums whose estimates are the means of the importance
    weights w, and of w (r − q̂) with the reward r and the predicted reward q̂. ``lost`` is
    Σ w (c − 1), where c is the factor by which an estimated propensity was raised to its floor.
    ``weights`` are w times the sampling weight, whose sum is ``kept``; ``parts`` are the weights of
    slots and of sessions, by name.
    """

    decisions: float
    mean_weight: TermSums
    model_error: TermSums
    lost: float
    weights: WeightSums
    kept: float
    parts: dict[str, WeightSums]
    unsupported: float
    estimates: dict[str, TermSums]

    @classmethod
    def of(
        cls,
        about: Evidence,
        rewards: Floats,
        estimates: dict[str, TermSums],
        units: Units,
        log: Log | None,
    ) -> "PolicySums":
        """Return the sums over the rows of a batch; ``rewards`` are those to distinguish."""
        weight, count, sampling = about.weight, about.counts, about.sampling_weight
        units = units if units.clusters else Units()
        decisions, lost = total(weight, count), 0.0
        if log is not None and log.raised is not None:
            lost = float((count * weight * (log.raised - 1)).sum())
        parts = {}
        if about.slot_weight is not None:
            added = 1 - about.slot_weight.shape[1] + about.slot_weight.sum(axis=1)
            parts["slots"] = WeightSums.of(added, count)
        if about.sessions is not None and log is not None and log.session is not None:
            # Rows of one session have nearly the same weight: sessions count, not rows.
            through = np.bincount(log.session, about.sessions[:, 1])
            parts["sessions"] = WeightSums.of(through.astype(np.float64))
        mean_weight, model_error = (
            TermSums.of(sampled(Terms(values, counts=count), sampling), None, centre, units)
            for values, centre in ((weight, 1.0), (weight * (about.reward - about.predicted), 0.0))
        )
        return cls(
            decisions,
            mean_weight,
            model_error,
            lost,
            WeightSums.of(weight * sampling, count, about.reward, rewards),
            decisions * mean(sampling, count),
            parts,
            decisions * mean(about.unsupported, count),
            estimates,
        )

    @property
    def diagnostics(self) -> Diagnostics:
        count = self.decisions
        return self.weights.diagnostics(self.unsupported / count, count / self.kept)

    def cautions(self, log: "LogSums", largest: float | None, never: str) -> Iterator[Caution]:
        """Yield the cautions that concern the policy.

        ``largest`` is the largest possible weight, and ``never`` names choices that no row took.
        """
        diagnostics, weight = self.diagnostics, self.mean_weight.estimate()
        if diagnostics.unsupported > MOST_UNSUPPORTED:
            yield (
                "all",
                f"the policy gives {diagnostics.unsupported:.0%} of its decisions to actions that "
                f"no evaluated row took ({never}): the log says nothing about them",
            )
        largest = max(largest or 0.0, diagnostics.largest)
        z = errors_from_one(weight.value, weight.error, weight.decisions, largest)
        if abs(z) > SIGNIFICANT_ERRORS:
            why = "the log could not take some actions of the policy, or " if z < 0 else ""
            sentence = (
                f"the weights average {diagnostics.mean_weight:.2f} instead of 1, which chance "
                f"does not explain: {why}the propensities are wrong"
            )
            yield from ((about, sentence) for about in ("weights", "sessions"))
        yield from spread_cautions(diagnostics)
        yield from rare_reward_cautions(diagnostics)
        error = self.model_error.estimate()
        about_model = "the interval of dm does not include the error of its model of rewards"
        if abs(error.value) > SIGNIFICANT_ERRORS * error.error:
            about_model = f"the model of rewards is off by {error.value:+.2g}"
        yield ("model", about_model)
        if self.lost > 0:
            yield (
                "propensities",
                f"{log.raised} estimated propensities were raised to a floor, so "
                f"{self.lost / self.decisions:.2%} of the decisions of the policy are ignored",
            )
        if "sessions" in self.parts:
            yield (
                "single decisions",
                "the estimate assumes that a decision does not change what comes later in its "
                "session; per-decision does not",
            )
        for name, weights in self.parts.items():
            yield from spread_cautions(weights.diagnostics(), name)


def spread_cautions(diagnostics: Diagnostics, about: str = "weights") -> Iterator[Caution]:
    """Yield a caution if few rows have most of the weight."""
    rows, effective, largest, largest_share, *_ = diagnostics
    weights = {"slots": "slot weights", "sessions": "session weights"}.get(about, "weights")
    unit = "session" if about == "sessions" else "row"
    if effective < max(FEWEST_EFFECTIVE, LEAST_EFFECTIVE_SHARE * rows):
        yield (
            about,
            f"by the {weights} the effective sample size is only {effective:.0f} of {rows} "
            f"{unit}s: the policy differs too much from the log",
        )
    if largest_share > LARGEST_WEIGHT_SHARE:
        yield (
            about,
            f"one {unit} has {largest_share:.0%} of the sum of all {weights} (its weight is "
            f"{largest:.3g}): intervals are too short",
        )


def rare_reward_cautions(diagnostics: Diagnostics) -> Iterator[Caution]:
    """Yield a caution if too few rows, by their weights, have a reward other than the usual one."""
    count, usual = diagnostics.effective_rewards, diagnostics.usual
    rows = "rewarded rows" if usual == 0 else f"rows with a reward other than {usual:g}"
    if count == 0:
        yield (
            "all",
            f"no {rows} count for this policy: only the far end of the interval is informative",
        )
    elif count < FEWEST_REWARDS:
        yield (
            "all",
            f"only {np.floor(10 * count) / 10} {rows} count for this policy; "
            f"{FEWEST_REWARDS:g} are needed",
        )


# The log ------------------------------------------------------------------------------------------


class ChoiceFacts(NamedTuple):
    """One choice of a slot: its ``rows``, their mean reward, and a check of its propensities.

    The reward is NaN if no row took the choice. Over the rows that took a choice, Σ 1 / p is on
    average the number of rows in which the choice was eligible, times the number of joint actions
    that contain it. ``ratio`` is the sum over this expectation, with its standard ``error``, and
    ``z`` is the distance of the ratio from 1 in standard errors, which allows for rare rows that
    happen not to have occurred. They are None if too few rows took the choice.
    """

    slot: str
    action: str
    rows: int
    mean_reward: float
    ratio: float | None = None
    z: float | None = None
    error: float | None = None

    def row(self) -> dict[str, Any]:
        """Return the facts as a row of a table."""
        return self._asdict()

    @property
    def plausible(self) -> bool:
        """Whether chance explains the distance of the ratio from 1."""
        return self.z is None or not abs(self.z) > SIGNIFICANT_ERRORS


class LogSums(Additive, frozen=True):
    """Sums over the evaluated rows of a log.

    ``choices`` has for each slot, for each of its choices, ``[choices, 6]``: the decisions that
    took it, Σ v, Σ v r, Σ v s, Σ v² s² and Σ v² s, where v is the sampling weight (else 1), r the
    reward and s = 1 / (p · the joint actions that contain it). ``of_set [sets, 3]`` are the
    decisions, Σ v and Σ v² of each set of eligible choices; ``propensities_of_set`` is their range.
    ``rewards`` are the moments of the rewards minus ``centre``, and ``ends`` their range.
    """

    shared = ("centre",)

    choices: list[Floats]
    of_set: Floats
    propensities_of_set: Range
    rewards: Moments
    centre: float
    ends: Range
    propensity: float
    estimated: float
    raised: int

    @classmethod
    def of(cls, log: Log, centre: float) -> "LogSums":
        """Return the sums over the rows of a batch."""
        sets, counts = log.eligible_set, log.counts
        low, high = np.full(len(log.eligible_sets), np.inf), np.zeros(len(log.eligible_sets))
        np.minimum.at(low, sets, log.propensity)
        np.maximum.at(high, sets, log.propensity)
        choices, kept = [], 1.0 if log.sampling_weight is None else log.sampling_weight
        for slot, one in enumerate(log.schema.menu.slots):
            containing = joint_actions_containing(log, slot)
            chosen = log.action[:, slot].astype(np.int64)
            score = 1.0 / (log.propensity * containing[sets])
            score *= kept * log.eligible_choices(slot)[sets, chosen]
            means = [kept, kept * log.reward]
            columns = [counts, *(counts * one for one in (*means, score, score**2, kept * score))]
            sums = [np.bincount(chosen, each, minlength=len(one.choices)) for each in columns]
            choices.append(np.stack(sums, axis=1).astype(np.float64))
        return cls(
            choices,
            np.stack([np.bincount(sets, counts * kept**n, len(low)) for n in range(3)], axis=1),
            Range(low, high),
            Moments.of([log.reward - centre], len(log), counts),
            centre,
            Range.of(log.reward),
            float(counts @ log.propensity),
            float(counts @ log.estimated),
            0 if log.raised is None else int(np.count_nonzero(log.raised > 1)),
        )

    @property
    def decisions(self) -> int:
        return round(self.rewards.decisions)

    @property
    def mean_reward(self) -> float:
        return self.centre + float(self.rewards.first[0]) / self.rewards.decisions

    @property
    def propensities(self) -> tuple[float, float, float]:
        """The lowest, the mean and the highest propensity."""
        low, high = self.propensities_of_set
        return float(low.min()), self.propensity / self.rewards.decisions, float(high.max())

    def eligible_decisions(self, log: Log, slot: int) -> Floats:
        """Return in how many decisions each choice of a slot was eligible, ``[choices]``."""
        decisions: Floats = self.of_set[:, 0] @ log.eligible_choices(slot)
        return decisions

    def facts(self, log: Log, crowding: float = 1.0) -> list[ChoiceFacts]:
        """Return the facts about every choice, the most frequent choice of each slot first.

        Rows of one cluster may share one draw: ``crowding`` multiplies the variance.
        """
        found = []
        for place, slot in enumerate(log.schema.menu.slots):
            table, eligible = self.choices[place], log.eligible_choices(place)
            with np.errstate(divide="ignore"):
                of_set = 1 / (self.propensities_of_set.low * joint_actions_containing(log, place))
            largest = np.where(eligible, of_set[:, None], 0.0).max(axis=0)
            # The terms are v s in the rows that took a choice, 0 in others where it was eligible.
            count, kept, squares = np.maximum(self.of_set.T @ eligible, 1.0)
            ratio = table[:, 3] / kept
            squares = table[:, 4] - 2 * ratio * table[:, 5] + ratio**2 * squares
            error = np.sqrt(crowding * np.maximum(squares, 0.0)) / kept
            z = errors_from_one(ratio, error, count / crowding, largest)
            checks = np.stack([ratio, z, error], axis=1)
            for index in np.argsort(-table[:, 0], kind="stable"):
                rows, weight, earned = map(float, table[index, :3])
                average = earned / weight if rows else np.nan
                # Choices that were rarely or never taken are reported as a lack of support.
                check = checks[index].tolist() if rows >= FEWEST_TAKEN else []
                name = slot.choices[index].name
                found.append(ChoiceFacts(slot.name, name, int(rows), average, *check))
        return found

    def cautions(
        self, choices: Sequence[ChoiceFacts], ranges: bool, distinct: int
    ) -> Iterator[Caution]:
        """Yield the cautions that concern the log, and so all policies.

        ``ranges`` says that actions have real-valued parts, ``distinct`` how many rewards occur.
        """
        decisions = self.decisions
        if self.estimated:
            yield (
                "propensities",
                f"{self.estimated:.0f} of {decisions} propensities are estimated, so these numbers "
                "are only as good as the model of how the log chose its actions",
            )
        if self.choices and all(len(one) < 2 for one in self.choices):
            yield ("all", "the log has only one action, so there is nothing to compare")
        worst = max(choices, key=lambda one: abs(one.z or 0.0), default=None)
        if worst is not None and not worst.plausible:
            yield (
                "propensities",
                f"the propensities of {worst.action!r} do not match how often it was taken: "
                f"their inverses add up to {worst.ratio:.2f} times the expected sum, which chance "
                "does not explain",
            )
        rarest, _, _ = self.propensities
        if not ranges and rarest * decisions < 1:
            yield (
                "propensities",
                f"the smallest propensity is {rarest:.2g}: fewer than one such row is expected "
                f"among {decisions}, so a wrong propensity cannot be told from a rare event",
            )
        low, high = self.propensities_of_set
        if (high > (1 + UNIFORM_TOLERANCE) * low).any():
            yield ("replay", "replay needs a uniform log, and the propensities of this log vary")
        yield from self.large_reward_cautions(distinct)

    def large_reward_cautions(self, distinct: int) -> Iterator[Caution]:
        """Yield a caution if one reward decides, although rewards have more than two values."""
        average, variance, _ = self.rewards.central([1.0])
        farthest = max(self.ends, key=lambda end: abs(end - self.centre - average))
        share = (farthest - self.centre - average) ** 2 / max(variance * self.decisions, 1e-300)
        # The rarer one of two values is no outlier, and there is a caution about rare rewards.
        if distinct > 2 and share > LARGEST_REWARD_SHARE:
            yield (
                "all",
                f"one row has the reward {farthest:g}, which causes {share:.0%} of the variance "
                "of all rewards and dominates every number: check this row",
            )


def joint_actions_containing(log: Log, slot: int) -> Floats:
    """Return for each eligible set how many joint actions contain an eligible choice of a slot."""
    volume = float(np.prod([one.high - one.low for one in log.schema.menu.ranges]))
    sizes = log.eligible_sizes()
    found: Floats = sizes.prod(axis=1) * volume / sizes[:, slot]
    return found
