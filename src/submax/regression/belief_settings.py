"""How a belief about contexts is learned."""

from dataclasses import dataclass, field

from submax.core.arrays import Floats, Integers
from submax.regression.prior import PriorStructure


@dataclass(frozen=True)
class BeliefSettings:
    """How a belief is learned.

    ``features`` is the largest number of features, ``rows`` the number of rows from which the map
    is made and the size of the sample kept, ``draws`` how many posterior draws are kept and
    ``width`` their deviation from the mean as a share of the posterior's, ``discount`` the factor
    by which the weight of a row falls with every later row, ``kernels`` whether there are kernels
    beside the linear part. ``action_features [K, q]`` are numbers that describe the actions, if
    there are any: actions with similar numbers are expected to have similar coefficients. If the
    actions are not ``shared``, what is learned of one says nothing about another.
    """

    actions: int
    features: int
    rows: int
    draws: int
    width: float
    discount: float
    kernels: bool = True
    action_features: Floats | None = field(default=None, compare=False)
    shared: bool = True

    def design(self, groups: Integers) -> PriorStructure:
        """How the regressions of the actions are related, for features in these groups."""
        if self.shared:
            return PriorStructure.sharing(groups, self.actions, self.action_features)
        return PriorStructure.independent(groups, self.actions)
