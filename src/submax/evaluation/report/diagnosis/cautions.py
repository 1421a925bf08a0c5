"""Reasons not to trust an estimate, as sentences."""

from collections.abc import Iterator

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import error_of_mean, mean
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.normal import normal
from submax.evaluation.logs.log import Log
from submax.evaluation.report.diagnosis.caution import Caution
from submax.evaluation.report.diagnosis.diagnostics import Diagnostics, errors_from_one
from submax.evaluation.report.diagnosis.propensity_calibration import worst_calibration
from submax.evaluation.report.diagnosis.reward_cautions import large_reward_cautions
from submax.evaluation.report.diagnosis.weight_cautions import (
    mean_weight_cautions,
    propensity_cautions,
    spread_cautions,
    weight_cautions,
)
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.report.evidence.policy_evidence import PolicyEvidence

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
