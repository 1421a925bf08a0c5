"""The estimates of one policy, with the terms from which they were computed."""

from typing import NamedTuple

from submax.evaluation.report.estimate import Estimate
from submax.evaluation.terms import Terms


class EstimatedPolicy(NamedTuple):
    """The estimates of one policy by all estimators, and their terms in the same order."""

    estimates: list[Estimate]
    terms: list[Terms]
