"""Compares what several policies would have earned, by several off-policy estimators."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.evaluation.intervals import INTERVALS
from submax.evaluation.learning import learn
from submax.evaluation.logs.log import By, Log
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.report.candidates import Candidate, checked, named, unseen_rows
from submax.evaluation.report.caution import Caution
from submax.evaluation.report.cautions import log_cautions
from submax.evaluation.report.comparison_view import comparison_summary
from submax.evaluation.report.estimate import Estimate
from submax.evaluation.report.estimator_set import EstimatorSet
from submax.evaluation.report.logged_evidence import LoggedEvidence
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.learned import Learned

USUAL = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage")
"""Estimators that apply to every log; they are used if the caller names none."""
SAME_PROPENSITY = 1e-9
"""If propensities differ by less than this, the log is uniform and replay applies."""


class Comparison(NamedTuple):
    """All estimates, policies in the order given, and ``notes``: sentences about the log.

    ``level`` is that of the confidence intervals, such as 0.95.
    """

    estimates: list[Estimate]
    notes: list[str]
    level: float

    def policies(self) -> list[str]:
        """Return the names of the policies, the logging policy first."""
        return list(dict.fromkeys(one.policy for one in self.estimates))

    def estimators(self) -> list[str]:
        """Return the labels of the estimators, that of the logging policy first."""
        return list(dict.fromkeys(one.estimator for one in self.estimates))

    def rows(self) -> list[dict[str, Any]]:
        """Return all numbers as rows of a table, the logging policy first."""
        return [
            {
                "policy": one.policy,
                "estimator": one.estimator,
                "recommended": one.recommended,
                "value": one.value,
                "low": one.interval.low,
                "high": one.interval.high,
                "threshold": one.threshold,
                **one.diagnostics._asdict(),
                "warnings": " | ".join(one.cautions),
            }
            for one in self.estimates
        ]

    def __repr__(self) -> str:
        return str(comparison_summary(self.estimates, self.notes, self.level))

    def _repr_html_(self) -> str:
        return comparison_summary(self.estimates, self.notes, self.level).html()

    def recommended(self) -> list[Estimate]:
        """Return the recommended estimate of each policy, the logging policy first."""
        return [one for one in self.estimates if one.recommended]

    def find(self, policy: str, estimator: str) -> Estimate | None:
        """Return the estimate of a policy by an estimator; None if there is none."""
        for one in self.estimates:
            if (one.policy, one.estimator) == (policy, estimator):
                return one
        return None


def compare(
    log: Log,
    policies: Sequence[Candidate] | Mapping[str, Candidate],
    *,
    estimators: Sequence[str | Mapping[str, Any]] = (),
    interval: str = "gamma",
    level: float = 0.95,
    share: float = 0.5,
    by: By = "time",
    seed: int = 0,
    apart: bool = False,
    reward_model: Any = None,
) -> Comparison:
    """Return what policies would have earned on a log, with that of the logging policy.

    A policy given by name, table or object learns from a ``share`` of the rows, the first by time
    or random ones, and is evaluated on the other rows.

    A policy that was learned before, given as ``Learned`` or as its file, is evaluated on the same
    rows, or on all rows if every policy was learned before. If it was learned from this log, or
    from this log before it grew, it is evaluated on the rows it did not learn from; if it learned
    from all rows, its estimates have a caution. ``apart=True`` asserts that it learned from none
    of the rows.

    ``linucb@greedy`` is the variant of a policy that takes its most likely action,
    ``linucb@temperature=0.5`` one that is sharper, and ``reward-model`` takes the action with the
    highest predicted reward. A policy can also be an array of its probabilities ``[N, M]`` in all
    rows, a function from columns of context to actions or probabilities, or a fitted classifier.

    ``reward_model`` is the model on which ``dm`` and ``dr`` rely: `bayesian` (the default), `auto`
    (the better of it and boosted trees), a dotted name or an object of scikit-learn, or a list from
    which the one with the least held-out error is chosen. All are cross-fitted.

    Without ``estimators`` all estimators that apply to the log are used. ``interval`` is `gamma`
    (which also holds for rare rewards), `normal`, `bootstrap` or `bernstein`. One estimate of each
    policy is recommended, by the rule of ``recommendation.py``.

    >>> rng = np.random.default_rng(0)
    >>> action = rng.integers(2, size=2000)
    >>> log = Log.from_arrays(action, rng.random(2000) < 0.2 + 0.3 * action,
    ...                       propensity=np.full(2000, 0.5))
    >>> found = compare(log, ["rcp-submax"], estimators=["snips"])
    >>> found.find("rcp-submax", "snips").value > found.find("logging policy", "mean").value
    True
    """
    one_of("interval", interval, INTERVALS)
    if not 0 < level < 1:
        raise InputError(
            f"the level of an interval is {level!r}, and must be between 0 and 1: "
            "give 0.95 for intervals of 95 %"
        )
    candidates = {name: checked(one, log) for name, one in named(policies).items()}
    chosen = _chosen_estimators(estimators, log)
    first = np.zeros(len(log), dtype=bool)
    if any(_learns(one) for one in candidates.values()):
        first = log.chosen(share, by, seed)
    rest = log.rows(~first).with_estimated_propensities(seed)
    estimator_set = EstimatorSet(chosen or _applicable(rest), interval, level, seed)
    logged = LoggedEvidence(rest, seed, reward_model, np.flatnonzero(~first))
    cautions = list(log_cautions(logged))
    notes = [*rest.notes, *logged.model_choice.notes()]
    evaluation = _Evaluation(
        log, first, estimator_set, logged, cautions, notes, apart, reward_model
    )
    if first.any():
        evaluation.notes.append(f"evaluated on {len(rest)} rows, learned from {int(first.sum())}")
    estimates = [estimator_set.logging_policy(logged)]
    for name, one in candidates.items():
        estimates += evaluation.estimates(name, one)
    return Comparison(estimates, evaluation.notes, level)


class _Evaluation(NamedTuple):
    """A log split into the rows to learn from (``first``) and the rows to evaluate on.

    ``logged`` and ``cautions`` belong to the rows to evaluate on.
    """

    log: Log
    first: Booleans
    estimator_set: EstimatorSet
    logged: LoggedEvidence
    cautions: list[Caution]
    notes: list[str]
    apart: bool
    reward_model: Any

    def estimates(self, name: str, candidate: Any) -> list[Estimate]:
        """Return the estimates of one policy, on rows it did not learn from if there are any."""
        target, seed = candidate, self.estimator_set.seed
        if isinstance(target, TargetPolicy) and target.learns:
            target = target.learned_from(self.log.rows(self.first), seed)
        elif _learns(target):
            target = learn(self.log.rows(self.first), candidate, seed=seed, keep_rows=0)
        learned = target.base if isinstance(target, TargetPolicy) else target
        ignored = learned is not None and not learned.policy.facts.uses_context
        if ignored and self.log.schema.context.width:
            self.notes.append(f"{name} does not look at the context")
        learned_before = learned is not None and not _learns(candidate) and not self.apart
        unseen = unseen_rows(self.log, learned) if learned_before and learned else None
        if unseen is None and learned_before:
            self.notes.append(
                f"{name} was learned from another log: whether it learned from some of these rows "
                "is not known"
            )
        logged, cautions = self._logged_for(name, unseen)
        saw_all = unseen is not None and not unseen.any()
        return self.estimator_set.estimates(name, logged.about(target), logged, cautions, saw_all)

    def _logged_for(
        self, name: str, unseen: Booleans | None
    ) -> tuple[LoggedEvidence, list[Caution]]:
        """Return the rows on which to evaluate a policy that did not learn from ``unseen`` rows.

        These are the rows used for all policies, unless the policy did not learn from others.
        """
        if unseen is None or not unseen.any() or np.array_equal(unseen, ~self.first):
            return self.logged, self.cautions
        seed = self.estimator_set.seed
        rows = self.log.rows(unseen).with_estimated_propensities(seed)
        own = LoggedEvidence(rows, seed, self.reward_model, np.flatnonzero(unseen))
        self.notes.append(
            f"{name} is evaluated on the {len(own.log)} rows that it did not learn from"
        )
        return own, list(log_cautions(own))


def _learns(candidate: Any) -> bool:
    """Return whether a candidate has to learn from a part of the log before it is evaluated."""
    if isinstance(candidate, TargetPolicy):
        return candidate.learns
    return not isinstance(candidate, Learned)


def _has_slots(log: Log) -> bool:
    return len(log.schema.menu.slots) > 1 and not log.schema.menu.ranges


def _chosen_estimators(
    given: Sequence[str | Mapping[str, Any]], log: Log
) -> dict[str, OffPolicyEstimator]:
    """Return the estimators that the caller named, by label.

    The label is the short name; if several are of one kind, it contains their parameters.
    """
    if isinstance(given, (str, Mapping)):
        raise InputError(
            f"estimators is {given!r}, and must be a list of estimators: put it into a list, [...]"
        )
    made = [make_off_policy(one) for one in given]
    kinds = [one.short for one in made]
    labelled: dict[str, OffPolicyEstimator] = {}
    for one in made:
        if one.uses_slots and not _has_slots(log):
            raise InputError(
                f"the estimator {one.short} needs a log of several slots without real-valued "
                "parts, and this log has none: leave the estimator out"
            )
        label = one.short if kinds.count(one.short) == 1 else repr(one)
        if label in labelled:
            raise InputError(f"the estimator {label} is asked for twice: leave one of the two out")
        labelled[label] = one
    return labelled


def _applicable(log: Log) -> dict[str, OffPolicyEstimator]:
    """Return all estimators that apply to the log."""
    more = ["pseudo-inverse"] if _has_slots(log) else []
    if np.ptp(log.propensity) < SAME_PROPENSITY:
        more.append("replay")
    return {name: make_off_policy(name) for name in (*USUAL, *more)}
