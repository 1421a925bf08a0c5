"""Settings of beliefs, and the rules by which beliefs are fitted again."""

from dataclasses import dataclass, field

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.models.regression.prior import PriorStructure

MAP_GROWTH = 1.6
"""A new feature map is chosen when the rows have grown by this factor since the last choice. The
cost of all choices together is then a small multiple of the cost of the last one."""
PRIOR_GROWTH = 0.1
"""The prior is fitted again when the weight of the rows has grown by this share of itself."""


@dataclass(frozen=True)
class BeliefSettings:
    """Settings of a belief about K ``actions``.

    - ``features``: largest number of features.
    - ``rows``: number of rows from which the feature map is chosen, and size of the stored sample.
    - ``draws``: number of posterior draws that are stored.
    - ``width``: factor by which the deviation of these draws from the posterior mean is scaled.
    - ``discount``: factor by which the weight of a row is multiplied for every later row.
    - ``kernels``: whether there are kernel features beside the linear ones.
    - ``action_features [K, q]``: numbers that describe the actions, if there are any. Actions with
      similar numbers are expected to have similar coefficients.
    - ``shared``: whether the rewards of one action inform the belief about the others.
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

    def prior_structure(self, groups: Integers) -> PriorStructure:
        """Return how the regressions of the actions are related, for features in these groups."""
        if self.shared:
            return PriorStructure.sharing(groups, self.actions, self.action_features)
        return PriorStructure.independent(groups, self.actions)


def prior_is_due(weight: float, fitted: float) -> bool:
    """Return whether to fit the prior again, given the rows' weight now and at the last fit."""
    return abs(weight - fitted) >= PRIOR_GROWTH * weight


def check_can_learn(feature_map: object, sums: object) -> None:
    """Raise an ``InputError`` if a belief has a map, but not the sums to learn further."""
    if feature_map is not None and sums is None:
        raise InputError(
            "this state was stored to decide, without the sums that further learning needs: fit a "
            "new state to all rows, or store the state for learning"
        )
