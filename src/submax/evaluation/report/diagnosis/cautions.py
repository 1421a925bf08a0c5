"""Reasons not to trust an estimate, as sentences."""

from collections.abc import Iterator

import numpy as np

from submax.evaluation.counts import error_of_mean, mean
from submax.evaluation.intervals.normal import normal
from submax.evaluation.logs.log import Log
from submax.evaluation.report.diagnosis.caution import Caution
from submax.evaluation.report.diagnosis.diagnostics import (
    SIGNIFICANT_ERRORS,
    Diagnostics,
    errors_from_one,
)
from submax.evaluation.report.diagnosis.propensity_calibration import worst_calibration
from submax.evaluation.report.diagnosis.reward_cautions import (
    large_reward_cautions,
    rare_reward_cautions,
)
from submax.evaluation.report.logged_evidence import LoggedEvidence
from submax.evaluation.report.policy_evidence import PolicyEvidence
from submax.evaluation.terms import Terms

FEWEST_EFFECTIVE = 100.0
"""Effective rows below which weighted estimates are doubtful: the normal approximation of their
intervals needs about this many."""
LEAST_EFFECTIVE_SHARE = 0.01
"""The same as a share of all rows: below it a few rows decide, however many rows there are."""
LARGEST_WEIGHT_SHARE = 0.05
"""One row with more than this share of all weight makes intervals unreliable."""
MOST_UNSUPPORTED = 0.01
"""Probability of untaken actions up to which a policy counts as covered by the log."""
UNIFORM_TOLERANCE = 0.01
"""Relative difference of propensities up to which a log counts as uniform, or two propensities as
equal: logged propensities are often rounded to two or three digits."""
FLOOR_LEVEL = 0.95
"""Level of the upper bound of the bias of a floor of the propensities."""
MOST_NAMES = 5
"""Names of choices that a sentence lists."""


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
    worst = worst_calibration(log)
    if worst is not None and not worst.plausible:
        yield Caution(
            "propensities",
            f"the propensities of {worst.choice!r} do not agree with how often it was taken: their "
            f"inverses add up to {worst.ratio:.2f} times the expected sum, and chance does not "
            "explain the difference",
        )
    rarest = float(log.propensity.min())
    if rarest * log.decisions < 1 and not log.schema.menu.ranges:
        yield Caution(
            "propensities",
            f"a propensity is as small as {rarest:.2g}: among {log.decisions} rows less than one "
            "with such a propensity is expected, so that a wrong propensity cannot be "
            "distinguished from a rare event",
        )
    if not _uniform(log):
        yield Caution("replay", "replay needs a uniform log, and the propensities of this log vary")
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
    if same_rows:
        yield Caution(
            "all",
            "the policy was learned from the rows on which it is evaluated, so that it looks too "
            "good: learn it from a share of the rows",
        )
    yield from _about_support(about_policy, found, logged)
    yield from _about_floor(about_policy, logged)
    yield from spread_cautions(found)
    yield from rare_reward_cautions(found)
    yield from _about_model(about_policy)
    groups = about_policy.evidence.group_weight
    if groups is not None:
        yield Caution(
            "groups",
            "mips assumes that actions with the same features earn the same, which is not tested",
        )
        yield from spread_cautions(
            Diagnostics.of_weights(
                groups, about_policy.evidence.reward, count=about_policy.evidence.counts
            ),
            "groups",
        )
    sessions = about_policy.evidence.trajectory
    if sessions is not None:
        yield from spread_cautions(
            Diagnostics.of_weights(sessions.through, about_policy.evidence.reward), "sessions"
        )
    slots = about_policy.evidence.slot_weight
    if slots is not None:
        added = Diagnostics.of_weights(
            1 - slots.shape[1] + slots.sum(axis=1),
            about_policy.evidence.reward,
            count=about_policy.evidence.counts,
        )
        yield from spread_cautions(added, "slots")


def _about_support(
    about_policy: PolicyEvidence, found: Diagnostics, logged: LoggedEvidence
) -> Iterator[Caution]:
    if found.unsupported > MOST_UNSUPPORTED:
        never = ", ".join(logged.never_taken()[:MOST_NAMES])
        yield Caution(
            "all",
            f"the policy gives {found.unsupported:.0%} of its decisions to actions that none of "
            f"the evaluated rows took ({never}): nothing is known about these actions",
        )
    # The largest weight that can occur: the policy is sure of the rarest logged action.
    rarest = 1.0 / float(logged.log.propensity.min())
    intervals = logged.log.schema.menu.ranges
    evidence = about_policy.evidence
    reach = found.largest if intervals else rarest
    z = errors_from_one(evidence.weight, reach, evidence.counts)
    if abs(z) > SIGNIFICANT_ERRORS:
        why = "the log could not take some of its actions, or " if z < 0 else ""
        yield Caution(
            "weights",
            f"the weights average {found.mean_weight:.2f} and should average 1, and chance does "
            f"not explain the difference: {why}the propensities are wrong",
        )


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


def spread_cautions(found: Diagnostics, about: str = "weights") -> Iterator[Caution]:
    """Yield a caution if few rows have most of the weight."""
    weights = {
        "slots": "slot weights",
        "groups": "group weights",
        "sessions": "session weights",
    }.get(about, "weights")
    if _few(found):
        yield Caution(
            about,
            f"by their {weights} the {found.rows} rows are worth {found.effective:.0f} rows of the "
            "policy itself, which is too few: the policy decides too differently from the log",
        )
    if found.largest_share > LARGEST_WEIGHT_SHARE:
        yield Caution(
            about,
            f"one row has {found.largest_share:.0%} of the sum of all {weights} (its weight is "
            f"{found.largest:.3g}): intervals are too short",
        )


def _about_model(about_policy: PolicyEvidence) -> Iterator[Caution]:
    """Yield the caution for the direct method, whose model errors nothing corrects."""
    evidence = about_policy.evidence
    residual = evidence.weight * (evidence.reward - evidence.predicted)
    average = mean(residual, evidence.counts)
    if abs(average) > SIGNIFICANT_ERRORS * error_of_mean(residual, evidence.counts):
        yield Caution(
            "model",
            "the rewards contradict the model of rewards: for this policy the model is off by "
            f"{average:+.2g}",
        )
    else:
        yield Caution(
            "model", "the interval of dm does not include the error of its model of rewards"
        )


def _few(found: Diagnostics) -> bool:
    few = found.effective < FEWEST_EFFECTIVE
    return few or found.effective < LEAST_EFFECTIVE_SHARE * found.rows


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
