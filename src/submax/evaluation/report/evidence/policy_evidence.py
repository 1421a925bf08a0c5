"""The evidence of a log about one policy, and how much of the policy the log does not cover."""

from typing import NamedTuple

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.contracts.counts import some
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.adjusted import adjusted
from submax.evaluation.intervals.sampled import sampled
from submax.evaluation.logs.clusters import renumbered


class PolicyEvidence(NamedTuple):
    """The ``evidence`` of the evaluated rows about one policy, and its ``unsupported`` share.

    ``unsupported [n]`` is the probability, in the context of each row, that the policy takes a
    choice which none of the evaluated rows took. ``cluster [n]`` is the number of each row's
    cluster, if the log has clusters, and ``sampling_weight [n]`` how many rows a row stands for, if
    the log is a sample. ``covariates [n, C]`` were measured before the decisions, if there are any.
    """

    evidence: Evidence
    unsupported: Floats
    cluster: Integers | None = None
    sampling_weight: Floats | None = None
    covariates: Floats | None = None

    def terms(self, estimator: OffPolicyEstimator) -> Terms:
        """Return the terms of an estimator, adjusted by covariates if it relies on weights.

        They are those of the whole log if these rows are a sample of it.
        """
        found = estimator.terms(self.evidence)
        if self.sampling_weight is not None:
            found = sampled(found, self.sampling_weight)
        if self.covariates is None or not estimator.uses_weights or estimator.short == "replay":
            return found
        return adjusted(found, self.evidence.weight, self.covariates, self.sampling_weight)

    def rows(self, mask: Booleans) -> "PolicyEvidence":
        """Return the evidence of some of the rows."""
        return PolicyEvidence(
            self.evidence.rows(mask),
            self.unsupported[mask],
            None if self.cluster is None else renumbered(self.cluster[mask]),
            some(self.sampling_weight, mask),
            None if self.covariates is None else self.covariates[mask],
        )
