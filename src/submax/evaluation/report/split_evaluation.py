"""Evaluates policies on the rows of a log from which they did not learn."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans
from submax.evaluation.choosing.training_length import training_warnings
from submax.evaluation.logs.log import Log
from submax.evaluation.overview.overlap import Overlap
from submax.evaluation.overview.overview import Overview
from submax.evaluation.overview.slices import slices_of
from submax.evaluation.report.candidates import unseen_rows
from submax.evaluation.report.comparisons.difference import Difference
from submax.evaluation.report.diagnosis.caution import Caution
from submax.evaluation.report.diagnosis.cautions import log_cautions
from submax.evaluation.report.estimate import LOGGING_POLICY, Estimate
from submax.evaluation.report.estimated_policy import EstimatedPolicy
from submax.evaluation.report.estimator_set import EstimatorSet
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.report.learned_targets import learned_target, learns
from submax.evaluation.targets.target_policy import TargetPolicy


class EstimatedPolicies(NamedTuple):
    """All estimates, the differences from the baseline, and the overview with all policies."""

    estimates: list[Estimate]
    differences: list[Difference]
    overview: Overview


class SplitEvaluation(NamedTuple):
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
    overview: Overview
    slices: Sequence[str]

    def compared(self, candidates: Mapping[str, Any], baseline: str) -> EstimatedPolicies:
        """Return the estimates of all policies, and their differences from the baseline."""
        log_policy = self.estimator_set.logging_policy(
            self.logged, slices_of(self.logged.log, self.slices)
        )
        estimates, differences = list(log_policy.estimates), list[Difference]()
        overlap, slices = dict[str, Overlap](), list(log_policy.slices)
        based, base_rows = log_policy, self.logged
        if baseline != LOGGING_POLICY:
            based, base_rows = self.estimated(baseline, candidates[baseline])
        for name, candidate in candidates.items():
            found, rows = (
                (based, base_rows) if name == baseline else self.estimated(name, candidate)
            )
            estimates += found.estimates
            slices += found.slices
            if found.overlap is not None:
                overlap[name] = found.overlap
            if rows is base_rows and name != baseline:
                differences += self.estimator_set.differences(found, based)
        overview = self.overview._replace(overlap=overlap, slices=slices)
        return EstimatedPolicies(estimates, differences, overview)

    def estimated(self, name: str, candidate: Any) -> tuple[EstimatedPolicy, LoggedEvidence]:
        """Return the estimates of one policy, and the rows on which it was evaluated.

        These are rows from which it did not learn, if there are any.
        """
        target = learned_target(candidate, self.log, self.first, self.estimator_set.seed)
        if learns(candidate) and not isinstance(candidate, TargetPolicy):
            short = training_warnings(target.policy, int(self.first.sum()))
            self.notes.extend(f"{name}: {sentence}" for sentence in short)
        learned = target.base if isinstance(target, TargetPolicy) else target
        ignored = learned is not None and not learned.policy.traits.uses_context
        if ignored and self.log.schema.context.width:
            self.notes.append(f"{name} does not look at the context")
        learned_before = learned is not None and not learns(candidate) and not self.apart
        unseen = unseen_rows(self.log, learned) if learned_before and learned else None
        if unseen is None and learned_before:
            self.notes.append(
                f"{name} was learned from another log: whether it learned from some of these rows "
                "is not known"
            )
        logged, cautions = self._logged_for(name, unseen)
        saw_all = unseen is not None and not unseen.any()
        about = logged.about(target)
        slices = slices_of(logged.log, self.slices)
        found = self.estimator_set.estimates(name, about, logged, cautions, saw_all, slices)
        return found, logged

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
