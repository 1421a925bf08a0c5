"""Which estimators evaluate the policies of a comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from submax.core.errors import InputError
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.logs.log import Log
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.report.evidence.action_groups import group_index
from submax.evaluation.report.evidence.logged_evidence import MOST_LISTED
from submax.schema.schema import Schema

USUAL = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage")
"""Estimators that apply to every log; they are used if the caller names none."""
SAME_PROPENSITY = 1e-9
"""If propensities differ by less than this, the log is uniform and replay applies."""


def has_slots(schema: Schema) -> bool:
    """Return whether actions have several slots and no real-valued parts."""
    return len(schema.menu.slots) > 1 and not schema.menu.ranges


def chosen_estimators(
    given: Sequence[str | Mapping[str, Any]], schema: Schema, has_sessions: bool = False
) -> dict[str, OffPolicyEstimator]:
    """Return the estimators that the caller named, by label.

    The label is the short name; if several are of one kind, it contains their parameters.
    """
    if isinstance(given, (str, Mapping)):
        raise InputError(
            f"estimators is {given!r}, and must be a list of estimators: put it into a list, [...]",
            parameter="estimators",
        )
    made = [make_off_policy(one) for one in given]
    kinds = [one.short for one in made]
    labelled: dict[str, OffPolicyEstimator] = {}
    for one in made:
        if one.uses_slots and not has_slots(schema):
            raise InputError(
                f"the estimator {one.short} needs a log of several slots without real-valued "
                "parts, and this log has none: leave the estimator out",
                parameter="estimators",
            )
        if one.uses_groups and group_index(schema) is None:
            raise InputError(
                f"the estimator {one.short} needs actions of which some have the same features, "
                "and this log has none: give action_features, or leave the estimator out",
                parameter="estimators",
            )
        if one.uses_sessions and not has_sessions:
            raise InputError(
                f"the estimator {one.short} needs a log with sessions, and this log has none: name "
                "the column, --column session=NAME, or leave the estimator out",
                parameter="estimators",
            )
        label = one.short if kinds.count(one.short) == 1 else repr(one)
        if label in labelled:
            raise InputError(
                f"the estimator {label} is asked for twice: leave one of the two out",
                parameter="estimators",
            )
        labelled[label] = one
    return labelled


def applicable_estimators(log: Log) -> dict[str, OffPolicyEstimator]:
    """Return all estimators that apply to the log."""
    more = ["pseudo-inverse"] if has_slots(log.schema) else []
    if group_index(log.schema) is not None and len(log.schema.menu.slots[0].choices) <= MOST_LISTED:
        more.append("mips")
    more += ["per-decision", "trajectory"] if log.session is not None else []
    if np.ptp(log.propensity) < SAME_PROPENSITY:
        more.append("replay")
    return {name: make_off_policy(name) for name in (*USUAL, *more)}
