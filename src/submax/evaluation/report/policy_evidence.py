"""The evidence of a log about one policy, and how much of the policy the log does not cover."""

from typing import NamedTuple

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.evidence import Evidence
from submax.evaluation.logs.clusters import renumbered


class PolicyEvidence(NamedTuple):
    """The ``evidence`` of the evaluated rows about one policy, and its ``unsupported`` share.

    ``unsupported [n]`` is the probability, in the context of each row, that the policy takes a
    choice which none of the evaluated rows took. ``cluster [n]`` is the number of each row's
    cluster, if the log has clusters.
    """

    evidence: Evidence
    unsupported: Floats
    cluster: Integers | None = None

    def rows(self, mask: Booleans) -> "PolicyEvidence":
        """Return the evidence of some of the rows."""
        cluster = None if self.cluster is None else renumbered(self.cluster[mask])
        return PolicyEvidence(self.evidence.rows(mask), self.unsupported[mask], cluster)
