"""The estimates of one policy, with the terms from which they were computed."""

from collections.abc import Sequence
from typing import NamedTuple

from submax.core.arrays import Integers
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.overview.overlap import Overlap
from submax.evaluation.overview.slices import SliceEstimate
from submax.evaluation.report.estimate import Estimate


class EstimatedPolicy(NamedTuple):
    """The estimates of one policy by all estimators, and their terms in the same order.

    ``cluster [n]`` is the number of each row's cluster, if the log has clusters. ``overlap`` is the
    distribution of the weights, and ``slices`` are recommended estimates of parts of the rows.
    """

    estimates: list[Estimate]
    terms: list[Terms]
    cluster: Integers | None = None
    overlap: Overlap | None = None
    slices: Sequence[SliceEstimate] = ()
