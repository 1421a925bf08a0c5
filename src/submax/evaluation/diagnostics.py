"""How far an estimate can be trusted: diagnostics, and warnings as sentences."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.estimators import Evidence, OffPolicyEstimator
from submax.evaluation.evidence import LoggedEvidence, PolicyEvidence
from submax.evaluation.intervals import Terms, error_of_mean, mean, normal, total
from submax.evaluation.log import Log


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
    def of(cls, about_policy: PolicyEvidence) -> "Diagnostics":
        """Return the diagnostics of the evidence about a policy."""
        evidence = about_policy.evidence
        unsupported = mean(about_policy.unsupported, evidence.counts)
        weight, sampling = evidence.weight, about_policy.sampling_weight
        if sampling is not None:
            weight = weight * sampling / mean(sampling, evidence.counts)
        return cls.of_weights(weight, evidence.reward, unsupported, evidence.counts)

    @classmethod
    def of_weights(
        cls,
        weight: Floats,
        reward: Floats,
        unsupported: float = 0.0,
        count: Floats | None = None,
    ) -> "Diagnostics":
        """Return the diagnostics of weights and of the rewards of the same rows.

        Weights that were added up over slots may be negative: all but the mean are then those of
        the absolute values. ``count`` is the number of decisions that each row stands for.
        """
        size = np.abs(weight)
        counted = size if count is None else count * size
        sum_of_weights, square = float(counted.sum()), float(counted @ size)
        largest = float(size.max())
        effective = sum_of_weights**2 / square if square > 0 else 0.0
        usual, share = _usual_reward(reward, counted)
        return cls(
            rows=round(total(weight, count)),
            effective=effective,
            largest=largest,
            largest_share=largest / sum_of_weights if sum_of_weights > 0 else 0.0,
            mean_weight=mean(weight, count),
            mean_error=error_of_mean(weight, count),
            unsupported=unsupported,
            effective_rewards=(1 - share) * effective,
            usual=usual,
        )


def _usual_reward(reward: Floats, weight: Floats) -> tuple[float, float]:
    """Return the reward with the largest share of the weight, and this share.

    If all weights are 0, it is the lowest reward, with a share of 1.
    """
    values, number = np.unique(reward, return_inverse=True)
    shares = np.bincount(number.ravel(), weights=weight)
    largest, total = int(np.argmax(shares)), float(shares.sum())
    return float(values[largest]), float(shares[largest]) / total if total > 0 else 1.0


def errors_from_one(terms: Floats, largest: float, count: Floats | None = None) -> float:
    """Return the signed distance of the mean of terms from 1, in standard errors.

    If the mean is below 1, terms as large as ``largest`` may be so rare that none was observed:
    the standard error is increased by what such terms could have added.
    """
    return _errors_from_one(
        mean(terms, count), error_of_mean(terms, count), total(terms, count), largest
    )


def _errors_from_one(average: float, error: float, decisions: float, largest: float) -> float:
    """Return the same from the mean of terms, its standard error, and the number of decisions."""
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


def worst_calibration(log: Log) -> PropensityCalibration | None:
    """Return the calibration of the choice with the largest |z|, among all slots.

    None if no choice was taken in at least ``FEWEST_TAKEN`` rows.
    """
    return max(calibrations(log), key=lambda one: abs(one.z), default=None)


def calibrations(log: Log) -> list[PropensityCalibration]:
    """Return the calibration of every choice that was taken in at least ``FEWEST_TAKEN`` rows.

    The terms of a choice are 1 / p over the joint actions that contain it in the rows that took it,
    and 0 in the other rows in which it was eligible. All choices are computed in one pass.
    """
    checked: list[PropensityCalibration] = []
    inverse, menu = 1.0 / log.propensity, log.schema.menu
    volume = float(np.prod([one.high - one.low for one in menu.ranges]))
    sizes = np.array(
        [[len(indices) for indices in eligible] for eligible in log.eligible_sets], dtype=float
    )
    joint_actions = sizes.prod(axis=1) * volume
    decisions = np.bincount(log.eligible_set, log.count, minlength=len(sizes))
    for slot, one in enumerate(menu.slots):
        # Number of eligible joint actions that contain a given eligible choice of this slot.
        containing = joint_actions / sizes[:, slot]
        score = inverse / containing[log.eligible_set]
        highest = np.full(len(sizes), -np.inf)
        np.maximum.at(highest, log.eligible_set, score)
        mask = log.eligible_choices(slot)
        chosen = log.action[:, slot].astype(np.int64)
        counted = mask[log.eligible_set, chosen].astype(np.float64)
        counted *= 1.0 if log.count is None else log.count
        among, added = decisions @ mask, partial(np.bincount, chosen, minlength=mask.shape[1])
        taken, ratio = added(counted), added(counted * score) / np.maximum(among, 1)
        square = added(counted * (score - ratio[chosen]) ** 2) + (among - taken) * ratio**2
        # Choices that were rarely or never taken are reported as a lack of support instead.
        for index in np.flatnonzero(taken >= FEWEST_TAKEN):
            largest, average = float(highest[mask[:, index]].max()), float(ratio[index])
            error = float(np.sqrt(square[index]) / among[index])
            z = _errors_from_one(average, error, float(among[index]), largest)
            name = one.choices[index].name
            checked.append(PropensityCalibration(one.name, name, average, z, error))
    return checked


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


def large_reward_cautions(reward: Floats, count: Floats | None = None) -> Iterator[Caution]:
    """Yield a caution if one reward decides, although rewards have more than two values."""
    squares = (reward - mean(reward, count)) ** 2
    total = float(squares.sum() if count is None else count @ squares)
    row = int(np.argmax(squares))
    if not total > 0 or squares[row] <= LARGEST_REWARD_SHARE * total:
        return
    alone = count is None or count[row] == 1
    others = np.delete(reward, row) if alone else reward
    if np.unique(reward).size <= 2:
        # The rarer one of two values is no outlier, and there is a caution about rare rewards.
        return
    yield Caution(
        "all",
        f"one row has the reward {reward[row]:g} and causes {squares[row] / total:.0%} of the "
        f"variance of all rewards (the others are from {others.min():g} to {others.max():g}): "
        "check this row, because one row decides every number",
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


def propensity_cautions(
    worst: PropensityCalibration | None, rarest: float | None, decisions: int, uniform: bool
) -> Iterator[Caution]:
    """Yield the cautions about the propensities of a log.

    ``worst`` is the calibration that is farthest from 1, ``rarest`` the smallest propensity (None
    for densities), and ``uniform`` says that rows with the same eligible choices have the same one.
    """
    if worst is not None and not worst.plausible:
        yield Caution(
            "propensities",
            f"the propensities of {worst.choice!r} do not agree with how often it was taken: their "
            f"inverses add up to {worst.ratio:.2f} times the expected sum, and chance does not "
            "explain the difference",
        )
    if rarest is not None and rarest * decisions < 1:
        yield Caution(
            "propensities",
            f"a propensity is as small as {rarest:.2g}: among {decisions} rows less than one "
            "with such a propensity is expected, so that a wrong propensity cannot be "
            "distinguished from a rare event",
        )
    if not uniform:
        yield Caution("replay", "replay needs a uniform log, and the propensities of this log vary")


def weight_cautions(
    found: Diagnostics,
    z: float,
    off: tuple[float, float],
    never_taken: Sequence[str],
    same_rows: bool,
) -> Iterator[Caution]:
    """Yield the cautions that follow from the weights of a policy.

    ``z`` is the distance of the mean weight from 1 in standard errors, ``off`` the mean of
    w (r − q̂) and its standard error, by which the model of rewards is off, and ``same_rows`` says
    that the policy was learned from the rows on which it is evaluated.
    """
    if same_rows:
        yield Caution(
            "all",
            "the policy was learned from the rows on which it is evaluated, so that it looks too "
            "good: learn it from a share of the rows",
        )
    if found.unsupported > MOST_UNSUPPORTED:
        never = ", ".join(never_taken[:MOST_NAMES])
        yield Caution(
            "all",
            f"the policy gives {found.unsupported:.0%} of its decisions to actions that none of "
            f"the evaluated rows took ({never}): nothing is known about these actions",
        )
    yield from mean_weight_cautions(found, z)
    yield from spread_cautions(found)
    yield from rare_reward_cautions(found)
    yield _about_model(*off)


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
            f"by the {weights} the effective sample size is {found.effective:.0f} of {found.rows} "
            f"{unit}s, which is too small: the policy decides too differently from the log",
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
            "the rewards contradict the model of rewards: for this policy the model is off by "
            f"{average:+.2g}",
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


def log_cautions(logged: LoggedEvidence) -> Iterator[Caution]:
    """Yield the cautions that concern the log, and so all policies."""
    log = logged.log
    estimated = int(log.estimated.sum() if log.count is None else log.estimated @ log.count)
    if estimated:
        yield Caution(
            "propensities",
            f"{estimated} of {log.decisions} propensities are estimated: these numbers are only as "
            "good as the model of how the log chose its actions",
        )
    if all(len(slot.choices) < 2 for slot in log.schema.menu.slots) and log.schema.menu.slots:
        yield Caution("all", "the log has only one action, so that there is nothing to compare")
    yield from propensity_cautions(
        worst_calibration(log),
        None if log.schema.menu.ranges else float(log.propensity.min()),
        log.decisions,
        _uniform(log),
    )
    yield from large_reward_cautions(log.reward, log.count)
    if logged.groups is not None and logged.groups.estimated:
        yield Caution(
            "groups",
            "the propensities of groups of actions are estimated, because the log has only those "
            "of the actions that were taken",
        )
    yield from _about_slots(logged)


def policy_cautions(
    about_policy: PolicyEvidence, found: Diagnostics, logged: LoggedEvidence, same_rows: bool
) -> Iterator[Caution]:
    """Yield the cautions that concern one policy.

    ``same_rows`` says that the policy was learned from the rows on which it is evaluated.
    """
    evidence = about_policy.evidence
    # The largest weight that can occur: the policy is sure of the rarest logged action.
    rarest = 1.0 / float(logged.log.propensity.min())
    reach = found.largest if logged.log.schema.menu.ranges else rarest
    z = errors_from_one(evidence.weight, reach, evidence.counts)
    residual = evidence.weight * (evidence.reward - evidence.predicted)
    off = (mean(residual, evidence.counts), error_of_mean(residual, evidence.counts))
    yield from weight_cautions(found, z, off, logged.never_taken(), same_rows)
    yield from _about_floor(about_policy, logged)
    yield from _about_groups(evidence)
    yield from _about_sessions(evidence, found, z, logged)
    if evidence.slot_weight is not None:
        slots = evidence.slot_weight
        added = 1 - slots.shape[1] + slots.sum(axis=1)
        spread = Diagnostics.of_weights(added, evidence.reward, count=evidence.counts)
        yield from spread_cautions(spread, "slots")


def _about_groups(evidence: Evidence) -> Iterator[Caution]:
    """Yield the cautions about groups of actions with the same features."""
    groups = evidence.group_weight
    if groups is None:
        return
    yield Caution(
        "groups",
        "mips assumes that actions with the same features earn the same, which is not tested",
    )
    spread = Diagnostics.of_weights(groups, evidence.reward, count=evidence.counts)
    yield from spread_cautions(spread, "groups")


def _about_sessions(
    evidence: Evidence, found: Diagnostics, z: float, logged: LoggedEvidence
) -> Iterator[Caution]:
    """Yield the cautions about sessions, ``z`` errors away from a mean weight of 1."""
    sessions = evidence.trajectory
    if sessions is None or logged.log.session is None:
        return
    yield Caution(
        "single decisions",
        "the estimate assumes that a decision does not change what comes later in its session, "
        "which is not tested; per-decision does not assume it",
    )
    yield from mean_weight_cautions(found, z, "sessions")
    # Rows of one session have nearly the same weight: sessions count, not rows.
    summed: Floats = np.bincount(logged.log.session, sessions.through).astype(np.float64)
    yield from spread_cautions(Diagnostics.of_weights(summed, summed), "sessions")


def _about_floor(about_policy: PolicyEvidence, logged: LoggedEvidence) -> Iterator[Caution]:
    """Yield a caution with a bound of the bias if estimated propensities were raised to a floor.

    Raising p to c p divides the weight w by c, so that the mean of w (c − 1) is the share of the
    policy's decisions that is not counted. A decision that is not counted changes a weighted mean
    by its reward r, a self-normalized one by at most the range of the rewards, and a doubly robust
    one by r − q̂. The bound is the share times the largest of these.
    """
    raised = logged.log.raised
    if raised is None:
        return
    evidence = about_policy.evidence
    lost = Terms(evidence.weight * (raised - 1), counts=evidence.counts)
    if not lost.value > 0:
        return
    ((_, share),) = normal([lost], FLOOR_LEVEL, np.random.default_rng(0))
    low, high = evidence.bounds or (float(evidence.reward.min()), float(evidence.reward.max()))
    error = float(np.abs(evidence.reward - evidence.predicted).max())
    largest = max(abs(low), abs(high), high - low, error)
    yield Caution(
        "propensities",
        f"{np.count_nonzero(raised > 1)} estimated propensities were raised to a floor, which "
        f"leaves out {lost.value:.2%} of the decisions of the policy: the bias is at most "
        f"{min(share, 1.0) * largest:.2g}",
    )


def _uniform(log: Log) -> bool:
    """Return whether rows with the same eligible choices have about the same propensity."""
    sets = len(log.eligible_sets)
    lowest, highest = np.full(sets, np.inf), np.zeros(sets)
    np.minimum.at(lowest, log.eligible_set, log.propensity)
    np.maximum.at(highest, log.eligible_set, log.propensity)
    return not np.any(highest > (1 + UNIFORM_TOLERANCE) * lowest)


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
